import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ephemeralSigner, type LocalSigner } from '@plat/keys'
import { appendCheckpoint, fillLedger, ledgerLines } from '@plat/testkit/ledger'
import fc from 'fast-check'
import { TreeGrower } from '../proof/grower.ts'
import { lastCheckpoint } from '../proof/stored-checkpoint.ts'
import { gatherEvidence } from './gather.ts'
import { sealEvidence } from './object.ts'
import { verifyEvidence } from './verify.ts'

/** More cases than any run reaches. */
const ENDLESS = 2 ** 31 - 1

/** One change: a piece is replaced by another piece of the object, or by any bytes. */
const change = fc.record({
  at: fc.nat(20_000),
  cut: fc.nat(200),
  from: fc.nat(20_000),
  piece: fc.nat(200),
  bytes: fc.oneof(fc.constant(new Uint8Array()), fc.uint8Array({ maxLength: 8 })),
})

/** Any object is either refused with a message or is the sealed one: verification never throws and accepts no modified object. */
export const target = {
  name: 'evidence object',
  async run(seconds: number, seed: number): Promise<{ cases: number; failures: readonly string[] }> {
    const signer = ephemeralSigner()
    const sealed = await objectOf(signer)
    const trust = { keys: [signer.publicKey], hmacKey: null, logKeys: null }
    const property = fc.asyncProperty(fc.array(change, { maxLength: 3 }), async (changes) => {
      let bytes = sealed
      for (const { at, cut, from, piece, bytes: more } of changes) {
        const between = [bytes.subarray(from, from + piece), more]
        bytes = Buffer.concat([bytes.subarray(0, at), ...between, bytes.subarray(at + cut)])
      }
      return (typeof (await verifyEvidence(bytes, trust)) === 'object') === bytes.equals(sealed)
    })
    const done = await fc.check(property, { seed, numRuns: ENDLESS, interruptAfterTimeLimit: seconds * 1000 })
    return { cases: done.numRuns, failures: done.failed ? [fc.defaultReportMessage(done) ?? 'failed'] : [] }
  },
}

async function objectOf(signer: LocalSigner): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'plat-'))
  try {
    const path = join(folder, 'audit.jsonl')
    await fillLedger(path, 13)
    await appendCheckpoint(path, signer)
    const lines = ledgerLines(path)
    const grower = await TreeGrower.open(path)
    await grower.grow({ seq: lines.length - 1, hash: JSON.parse(lines.at(-1) ?? '').hash })
    await grower.close()
    const checkpoint = (await lastCheckpoint(path))?.rec ?? {}
    const range = { from: 0, to: null, maxBytes: 1_000_000 }
    const found = await gatherEvidence(path, { ...range, checkpoint, wants: ({ kind }) => kind === 'outcome' })
    if ('why' in found) throw new Error(found.why)
    const { lines: records, proofs, ...rest } = found
    const stated = {
      evidence: 1,
      id: 'id',
      at: '',
      by: '',
      ledgerId: idOf(lines[0]),
      about: { kind: 'outcome' },
    } as const
    const head = { ...stated, ...rest, records: records.length, keys: [] }
    return await sealEvidence({ head, lines: records, proofs }, signer)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function idOf(genesis = '{}'): string {
  return JSON.parse(genesis).rec.ledgerId
}
