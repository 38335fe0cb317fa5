// Writes and reads values of a schema registry with franz-go's registry client and LinkedIn's goavro.
//
// Every line of standard input is one command, and every line of output its answer:
//
//	write SUBJECT SCHEMA VALUE  registers a schema, and prints a value, given in Avro's JSON, framed, in hex
//	read HEX                    prints a framed value in Avro's JSON
//
// Words are separated by tabs. An answer that begins with "error" says what failed.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/linkedin/goavro/v2"
	"github.com/twmb/franz-go/pkg/sr"
)

func main() {
	client, err := sr.NewClient(sr.URLs(os.Args[1]))
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		answer, err := answered(client, strings.Split(lines.Text(), "\t"))
		if err != nil {
			answer = "error " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(answer)
	}
}

func answered(client *sr.Client, words []string) (string, error) {
	ctx := context.Background()
	switch words[0] {
	case "write":
		codec, err := goavro.NewCodec(words[2])
		if err != nil {
			return "", err
		}
		schema, err := client.CreateSchema(ctx, words[1], sr.Schema{Schema: words[2], Type: sr.TypeAvro})
		if err != nil {
			return "", err
		}
		value, _, err := codec.NativeFromTextual([]byte(words[3]))
		if err != nil {
			return "", err
		}
		framed, err := new(sr.ConfluentHeader).AppendEncode(nil, schema.ID, nil)
		if err != nil {
			return "", err
		}
		framed, err = codec.BinaryFromNative(framed, value)
		return hex.EncodeToString(framed), err
	case "read":
		data, err := hex.DecodeString(words[1])
		if err != nil {
			return "", err
		}
		id, rest, err := new(sr.ConfluentHeader).DecodeID(data)
		if err != nil {
			return "", err
		}
		schema, err := client.SchemaByID(ctx, id)
		if err != nil {
			return "", err
		}
		codec, err := goavro.NewCodec(schema.Schema)
		if err != nil {
			return "", err
		}
		value, rest, err := codec.NativeFromBinary(rest)
		if err != nil {
			return "", err
		}
		if len(rest) > 0 {
			return "", fmt.Errorf("%d bytes are left", len(rest))
		}
		text, err := codec.TextualFromNative(nil, value)
		return string(text), err
	}
	return "", fmt.Errorf("unknown command %q", words[0])
}
