"""What a test does from inside the fleet's network, where brokers have names; run by ``python -c``.

``BOOTSTRAP make TOPIC`` creates it with a copy on each broker; ``BOOTSTRAP put TOPIC FROM TO`` writes an order for each
number; ``BOOTSTRAP leader TOPIC`` prints the host of the broker that leads it.
"""

import json
import sys

from confluent_kafka.admin import NewTopic

from journal import clients

bootstrap, what, topic, *numbers = sys.argv[1:]
admin = clients.make_admin(bootstrap)
if what == "make":
    for done in admin.create_topics([NewTopic(topic, 1, 3)]).values():
        done.result(30)
elif what == "put":
    producer = clients.make_producer(bootstrap)
    for number in range(*map(int, numbers)):
        producer.produce(topic, json.dumps({"id": number, "customer": "ada" if number % 3 else "grace", "n": number}))
    left = producer.flush(30)
    if left:
        sys.exit(f"{left} records were not acknowledged")
elif what == "leader":
    found = admin.list_topics(topic, timeout=10)
    print(found.brokers[found.topics[topic].partitions[0].leader].host)
