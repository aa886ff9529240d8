import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { ZERO_HASH } from './format.ts'
import { lineOf } from './testing/line.ts'
import { verifyLedger } from './verify.ts'

/** Number of lines of the initial ledger. */
const LINES = 8
/** More cases than any run reaches. */
const ENDLESS = 2 ** 31 - 1

function goodLedger(): Buffer {
  let prev = ZERO_HASH
  let text = ''
  for (let seq = 0; seq < LINES; seq++) {
    const line = lineOf(prev, `{"at":"2026-01-01T00:00:00.000000Z","kind":"admin","tool":"t${seq}"}`, seq)
    prev = line.hash
    text += line.text
  }
  return Buffer.from(text)
}

/** One change: a piece of the file is replaced by these bytes. */
const change = fc.record({ at: fc.nat(3000), cut: fc.nat(400), bytes: fc.uint8Array({ maxLength: 40 }) })

/** The verifier returns a finding for any file: it never throws, and never reports a modified ledger as valid. */
export const target = {
  name: 'ledger verify',
  async run(seconds: number, seed: number): Promise<{ cases: number; failures: readonly string[] }> {
    const folder = mkdtempSync(join(tmpdir(), 'plat-'))
    const path = join(folder, 'ledger.jsonl')
    const good = goodLedger()
    const property = fc.asyncProperty(
      fc.array(change, { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      async (changes, strict) => {
        let bytes = good
        for (const { at, cut, bytes: more } of changes)
          bytes = Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at + cut)])
        writeFileSync(path, bytes)
        const found = await verifyLedger(path, { strict })
        // A prefix of whole lines of a valid ledger is a valid ledger.
        const prefix =
          good.subarray(0, bytes.length).equals(bytes) && (bytes.at(-1) === 0x0a || good[bytes.length] === 0x0a)
        const valid = bytes.length > 0 && prefix
        return (found.exitCode === 0) === valid
      },
    )
    try {
      const done = await fc.check(property, { seed, numRuns: ENDLESS, interruptAfterTimeLimit: seconds * 1000 })
      const failures = done.failed ? [`${fc.stringify(done.counterexample)}: ${String(done.errorInstance)}`] : []
      return { cases: done.numRuns, failures }
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
}
