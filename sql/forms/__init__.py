"""Which functions there are, and how the engines are told them: a bound tree in the words of Spark."""
