// Command transparency checks a receipt of the ledger with libraries that know nothing of plat: the signed note and the
// checkpoint in it (C2SP signed-note and tlog-checkpoint), and the inclusion proof (RFC 6962), twice.
package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type input struct {
	Receipt struct {
		Seq        int64    `json:"seq"`
		Line       string   `json:"line"`
		Inclusion  []string `json:"inclusion"`
		Checkpoint struct {
			Note string `json:"note"`
		} `json:"checkpoint"`
	} `json:"receipt"`
	Origin string `json:"origin"`
	// Key is a verifier key of the Go checksum database: name+id+key.
	Key string `json:"key"`
}

func check() error {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	verifier, err := note.NewVerifier(in.Key)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	checkpoint, _, _, err := log.ParseCheckpoint([]byte(in.Receipt.Checkpoint.Note), in.Origin, verifier)
	if err != nil {
		return fmt.Errorf("note: %w", err)
	}
	var path [][]byte
	var record tlog.RecordProof
	for _, text := range in.Receipt.Inclusion {
		hash, err := hex.DecodeString(text)
		if err != nil {
			return err
		}
		path = append(path, hash)
		record = append(record, tlog.Hash(hash))
	}
	leaf := rfc6962.DefaultHasher.HashLeaf([]byte(in.Receipt.Line))
	if ours := tlog.RecordHash([]byte(in.Receipt.Line)); !bytes.Equal(ours[:], leaf) {
		return fmt.Errorf("the two libraries make different leaves")
	}
	index := uint64(in.Receipt.Seq)
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, index, checkpoint.Size, leaf, path, checkpoint.Hash); err != nil {
		return fmt.Errorf("inclusion: %w", err)
	}
	root := tlog.Hash(checkpoint.Hash)
	return tlog.CheckRecord(record, int64(checkpoint.Size), root, in.Receipt.Seq, tlog.Hash(leaf))
}

func main() {
	if err := check(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("proven")
}
