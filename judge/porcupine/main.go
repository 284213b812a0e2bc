// Checks histories of the compare-and-append register for linearizability with Porcupine.
//
// Reads one JSON history a line from standard input and writes one JSON verdict a line:
//
//	{"window": 0, "state": {"upper": 1, "token": null}, "ops": [
//	  {"client": 0, "start": 1, "end": 3, "f": "cas", "expected": 1, "new": 5, "token": "w0-1", "known": true},
//	  {"client": 1, "start": 2, "end": 4, "f": "read", "upper": 5, "token": "w0-1", "known": true}]}
//	{"window": 0, "ops": 2, "verdict": "valid"}
//
// "end" is null for what has not ended; "known" is false where nobody knows whether it happened.
// Exits with 0 if all histories are valid, 1 if one is not, 2 if some were not decided in time, 3 for other input.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// A line holds one window; a whole history of 200,000 operations is some 40 MB.
const lineBytesMax = 256 << 20

type state struct {
	Upper int64   `json:"upper"`
	Token *string `json:"token"`
}

type operation struct {
	Client   int     `json:"client"`
	Start    int64   `json:"start"`
	End      *int64  `json:"end"`
	F        string  `json:"f"`
	Expected int64   `json:"expected"`
	New      int64   `json:"new"`
	Upper    int64   `json:"upper"`
	Token    *string `json:"token"`
	Known    bool    `json:"known"`
}

type history struct {
	Window int         `json:"window"`
	State  state       `json:"state"`
	Ops    []operation `json:"ops"`
}

type verdict struct {
	Window  int    `json:"window"`
	Ops     int    `json:"ops"`
	Verdict string `json:"verdict"`
}

// What the model compares: tokens as values, an absent one as a text that no token is.
type register struct {
	upper int64
	token string
}

const noToken = "\x00"

func text(token *string) string {
	if token == nil {
		return noToken
	}
	return *token
}

func model(initial state) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return register{initial.Upper, text(initial.Token)} },
		Step: func(before, input, _ interface{}) (bool, interface{}) {
			now, op := before.(register), input.(operation)
			if op.F == "read" {
				return !op.Known || now == register{op.Upper, text(op.Token)}, now
			}
			if now.upper != op.Expected || op.New <= now.upper {
				// Uppers only grow, so one that is unknown and comes last never happened.
				return !op.Known, now
			}
			if op.Token != nil {
				now.token = *op.Token
			}
			now.upper = op.New
			return true, now
		},
	}
}

func check(found history, timeout time.Duration) string {
	var ops []porcupine.Operation
	for _, op := range found.Ops {
		end := int64(math.MaxInt64)
		if op.End != nil {
			end = *op.End
		}
		ops = append(ops, porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Start, Return: end})
	}
	switch porcupine.CheckOperationsTimeout(model(found.State), ops, timeout) {
	case porcupine.Ok:
		return "valid"
	case porcupine.Illegal:
		return "invalid"
	default:
		return "unknown"
	}
}

func run() (int, error) {
	timeout := flag.Duration("timeout", 60*time.Second, "how long all histories together may take")
	flag.Parse()
	deadline := time.Now().Add(*timeout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), lineBytesMax)
	out := json.NewEncoder(os.Stdout)
	worst := 0
	for lines.Scan() {
		var found history
		if err := json.Unmarshal(lines.Bytes(), &found); err != nil {
			return 3, err
		}
		said := "unknown"
		// A timeout of 0 would be none at all.
		if left := time.Until(deadline); left > 0 {
			said = check(found, left)
		}
		switch {
		case said == "invalid":
			worst = 1
		case said == "unknown" && worst == 0:
			worst = 2
		}
		if err := out.Encode(verdict{found.Window, len(found.Ops), said}); err != nil {
			return 3, err
		}
	}
	return worst, lines.Err()
}

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 3
	}
	os.Exit(code)
}
