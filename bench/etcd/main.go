// One etcd member and its callers in one process: compare-and-set on one key, as fast as they can.
//
// Usage: etcd DIRECTORY CLIENT_PORT PEER_PORT CALLERS SECONDS.  Prints one JSON object: sets a second, sets, tries, the
// 99th percentile of how long a set took from its first try on, in ms, and the sets of each caller.  A caller reads the
// key's revision, then sets it on condition that it is still that; where it is not, it tries again.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func local(port string) []url.URL {
	u, err := url.Parse("http://127.0.0.1:" + port)
	must(err)
	return []url.URL{*u}
}

func main() {
	config := embed.NewConfig()
	config.Dir = os.Args[1]
	config.LogLevel = "error"
	config.ListenClientUrls, config.AdvertiseClientUrls = local(os.Args[2]), local(os.Args[2])
	config.ListenPeerUrls, config.AdvertisePeerUrls = local(os.Args[3]), local(os.Args[3])
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	must(err)
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		must(fmt.Errorf("etcd was not ready within 30 s"))
	}
	callers, seconds := number(os.Args[4]), number(os.Args[5])
	var tries atomic.Int64
	took := make([][]float64, callers)
	var group sync.WaitGroup
	begun := time.Now()
	until := begun.Add(time.Duration(seconds) * time.Second)
	for i := 0; i < callers; i++ {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:" + os.Args[2]}})
		must(err)
		group.Add(1)
		go func() {
			defer group.Done()
			first := time.Now()
			for time.Now().Before(until) {
				found, err := client.Get(context.Background(), "key")
				must(err)
				revision := int64(0)
				if len(found.Kvs) > 0 {
					revision = found.Kvs[0].ModRevision
				}
				same := clientv3.Compare(clientv3.ModRevision("key"), "=", revision)
				put := clientv3.OpPut("key", strconv.FormatInt(tries.Add(1), 10))
				answer, err := client.Txn(context.Background()).If(same).Then(put).Commit()
				must(err)
				if answer.Succeeded {
					now := time.Now()
					took[i] = append(took[i], float64(now.Sub(first).Microseconds())/1e3)
					first = now
				}
			}
		}()
	}
	group.Wait()
	elapsed := time.Since(begun).Seconds()
	var all []float64
	each := make([]int, callers)
	for i, of := range took {
		all, each[i] = append(all, of...), len(of)
	}
	if len(all) == 0 {
		must(fmt.Errorf("nobody set anything within %d s", seconds))
	}
	sort.Float64s(all)
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"sets_per_s": float64(len(all)) / elapsed, "sets": len(all), "tries": tries.Load(),
		"p99_ms": all[len(all)*99/100], "each": each,
	}))
	os.Exit(0)
}
