// Command yaml-vectors writes what sigs.k8s.io/yaml, the YAML reader of kubectl and of Kubernetes controllers, makes of the
// texts below: one JSON object a line with the text and its JSON, or null where the strict reader refuses it.
//
//	go run . > vectors.jsonl
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// Plain scalars; each is written as a value, as an element of a list and as a key.
var scalars = strings.Fields(`
	y Y n N yes Yes YES yEs no No NO on On ON off Off OFF true True TRUE tRUE false False FALSE
	~ null Null NULL nULL
	0 1 -1 +1 -0 +0 00 01 007 -07 +07 08 09 0777 0o777 0O777 -0o17 0b101 0B101 -0b101 -0b 0b 0b2 0x1F 0X1f -0x1F +0x1f 0x 0xg
	1_000 _1 1_ 1__0 0x_1f 0b1_0 0o7_7 1_0.5 1_e3 1e_3 - + . .. -. +. _ __ 0_ -_1 0_7 0_8
	1:30 1:30:15 01:30 1:60 12:30:45.5 -1:30 190:20:30
	9007199254740991 9007199254740993 9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616
	-9223372036854775808 -9223372036854775809 0x7fffffffffffffff 0xffffffffffffffff 0x10000000000000000 123456789012345678901234567890
	0777777777777777777777 01777777777777777777777 0b1111111111111111111111111111111111111111111111111111111111111111
	e2 e401 E2 1e3 1E3 1e+3 1e-3 1e 1e+ -1e3 +1e3 1.e3 .e3 1e400 -1e400 1e-400 1.5e300 1e21 1e20 123456789e15 1e3.5 1ee3 e e+1 0e0 00e1 01e2 012e3
	1. 1.0 1.5 -1.5 +1.5 .5 -.5 +.5 01.5 1.5.1 1.2.3 0.1 0.10 1.10 100.0 1e-7 0.000001 0.0000001 1.7976931348623157e308
	3.14159265358979323846 16777217.0 16777217.5 0.1e1 5e-324 -0.0 0.0 0x1p4 0x1.8p1 0x.8p0 1p4
	.inf .Inf .INF -.inf -.Inf -.INF +.inf +.Inf +.INF .iNF .nan .NaN .NAN .nAn inf Inf +Inf -inf infinity nan NaN
	2001-01-01 2001-1-1 2001-12-14t21:59:43.10-05:00 2001-12-15T02:59:43.1Z 2001-12-14T21:59:43Z 2001 2001-02 20010101 2001-13-45
	<< = 1,5 1,000 1- 1-2 1a a1 0a 5m 10s 1Gi 500m v1 v1.2 1.2.3.4 10.0.0.1 ::1 a:b a/b 1/2 % $1 $x
	yes. trueish nullable 0xdeadbeef 0b0 00x1 1_2_3 --1 ++1 +-1 1+1 1e1e1 0.e1 0.5e-3
`)

// Whole documents.
var documents = []string{
	"", "---\n", "--- a\n", "a", "1", "[]", "{}", "# nothing\n", "~",
	"a: !!str 1", "a: !!int 1", "a: !!int \"1\"", "a: !!int x", "a: !!float 1", "a: !!float 1.5", "a: !!bool yes", "a: !!bool \"true\"", "a: !!null ~", "a: !!null x",
	"a: !!binary aGk=", "a: !!binary \"*\"", "a: !!timestamp 2001-01-01", "a: !!map {}", "a: !!seq []", "a: !!set {x}", "a: !!omap [x: 1]", "a: !foo x", "a: ! 1", "a: !!str yes", "a: !!int 0o7",
	"a: !<tag:yaml.org,2002:int> 7", "a: !!int 1.5", "a: !!str", "a: !!float x", "a: !!float .inf",
	"a: 'yes'", "a: \"yes\"", "a: '1'", "a: \"1e3\"", "a: |\n  yes\n", "a: >\n  1\n  2\n", "a: >-\n  1\n", "a: |+\n  x\n\n", "'1': x", "\"yes\": x", "'<<': {a: 1}", "\"<<\": {a: 1}\nb: 1",
	"a: 1\na: 1", "a: 1\n'a': 2", "1: a\n'1': b", "1: a\n1: b", "0x1: a\n1: b", "yes: a\n'true': b", "{a: 1, a: 2}", "a: {b: 1, b: 1}", "- {a: 1, a: 2}", "1.0: a\n1: b", "yes: a\non: b", "~: a\nnull: b", "~: a", "'': a", ": a", "null: 1", "{: a}",
	"a: &x 1\nb: *x", "a: &x {c: 1}\nb: *x", "a: &x [1]\nb: [*x, *x]", "a: *x", "a: &x 1\nb: &x 2\nc: *x", "a: &x b\n*x : c", "a: &x {b: *x}", "&a a: *a", "a: &x [*x]", "a: &x", "a: &x\nb: *x",
	"a: &x {p: 1}\nb:\n  <<: *x\n  q: 2", "a: &x {p: 1}\nb:\n  q: 2\n  <<: *x", "a: &x {p: 1}\nb:\n  p: 2\n  <<: *x", "a: &x {p: 1}\nb:\n  <<: *x\n  p: 2",
	"a: &x {p: 1}\nc: &y {p: 2, q: 3}\nb:\n  <<: [*x, *y]", "a: &x {p: 1}\nc: &y {q: 3}\nb:\n  <<: [*x, *y]\n  r: 1", "b:\n  <<: {p: 1}\n  q: 2", "b:\n  <<: [{p: 1}]", "<<: 1", "<<: [1]", "<<: ~", "<<: []",
	"a: &x {p: 1}\nb: &y {q: 1}\nc:\n  <<: *x\n  <<: *y", "a: &x [1]\nb:\n  <<: *x", "a: !!merge x", "!!merge <<: {a: 1}", "a: &x {1: p}\nb: {<<: *x}",
	"a: &x {p: {q: 1}}\nb: {<<: *x, r: 1}",
	"a: 1\n---\nb: 2\n", "a: 1\n---\n", "---\na: 1\n...\n", "---\na: 1\n...\nb: 2\n", "---\n---\na: 1\n", "a: 1\n...\n---\nb: 2\n", "--- {a: 1}\n", "%YAML 1.1\n---\na: yes\n", "%YAML 1.2\n---\na: yes\n", "%TAG ! tag:x,2000:\n---\na: !b c\n", "a: 1\n...\n", "a: 1\n...\n# end\n",
	"? a\n: b", "? [a]\n: b", "? {a: 1}\n: b", "[a]: b", "{a: 1}: b", "? a", "{a, b: 1}", "[a: 1]", "[a: 1, b: 2]", "{a: }", "{a}", "[,]", "[a,]", "{a: 1,}", "[a, , b]", "{\"a\":1}", "{\"a\":1,\"b\":[true,null,1.5e3]}", "{a:1}", "[1,2]", "{a: b: c}", "a: b: c",
	"a:\n- 1\n- 2", "a:\n  - 1\n  -\n  - 2", "a:\n  b:\n    c: 1", "a:\tb", "\ta: b", "a:\n\tb: 1", "a: b\n c: d", "a: b\n c", "a: 'it''s'", "a: \"\\x41\\u0041\\n\"", "a: \"\\q\"", "a: 'x\n\n  y'", "a: @x", "a: `x", "a: %x", "a: \"x", "a: [1", "a: {b", "a: x # c", "a: x#c", "a: \"\\/\"", "a: \"\\uD83D\\uDE00\"", "a: \"\\ud83d\"",
	"a: b\r\nc: d\r\n", "a: é\n", "\ufeffa: b\n", "a: \u0000\n", "a: \u0007\n", "a: \u0085b", "a: \u2028b", "a: x\u00a0y", "a: '\u007f'", "a: \u200bx",
	"__proto__: {a: 1}", "constructor: 1", "a: {__proto__: 1}", "a: -\n", "a: - 1", "- - 1\n  - 2", "-1: a", "- -1", "a: |2\n   x\n", "a: |\n  x\n y\n", "a: -1_0", "a: ?x", "a: :x", "a: x:y", "a: x: y", "a: [x:y]", "a: {x:y}", "a: {x: y}", "a: [?x]", "a: [-1]", "a: [-]",
	"yes: {no: on}", "on:\n  push: y", "a: [y, n, on, off]", "a: {y: n}", "1e3: x", "1.5: x", ".5: x", "0.1: x", "1e21: x", "1e20: x", ".inf: x", ".nan: x", "0777: x", "2001-01-01: x", "1e400: x", "16777217.0: x", "0x10: {0b1: ~}",
}

func read(text string) any {
	value, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil
	}
	return json.RawMessage(value)
}

type vector struct {
	Text    string `json:"text"`
	Refused bool   `json:"refused,omitempty"`
	JSON    any    `json:"json,omitempty"`
}

func main() {
	texts := documents
	for _, scalar := range scalars {
		texts = append(texts, "a: "+scalar, "- "+scalar, "a: ["+scalar+"]", scalar+": a", "a: "+scalar+" # comment", "'"+scalar+"'")
	}
	for _, text := range texts {
		value := read(text)
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(vector{Text: text, Refused: value == nil, JSON: value}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
