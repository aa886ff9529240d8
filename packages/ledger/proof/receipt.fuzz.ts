import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ephemeralSigner } from '@plat/keys'
import { appendCheckpoint, fillLedger } from '@plat/testkit/ledger'
import fc from 'fast-check'
import { type Receipt, receiptFromLedger, verifyReceipt } from './receipt.ts'

/** More cases than any run reaches. */
const ENDLESS = 2 ** 31 - 1
const RECORDS = 13

/** One change of a receipt's text: a piece is replaced by another piece of it, or by any text. */
const change = fc.record({
  at: fc.nat(4000),
  cut: fc.nat(80),
  from: fc.nat(4000),
  piece: fc.nat(80),
  bytes: fc.oneof(fc.constant(''), fc.string({ maxLength: 8 })),
})

/** Any receipt is either refused with a message or proves an existing record: verification never throws, and proves nothing else. */
export const target = {
  name: 'ledger receipt',
  async run(seconds: number, seed: number): Promise<{ cases: number; failures: readonly string[] }> {
    const signer = ephemeralSigner()
    const receipts = await receiptsOf(signer)
    const written = new Map(receipts.map(({ seq, line }) => [seq, line]))
    const trust = { keys: [signer.publicKey], hmacKey: null }
    const property = fc.property(fc.nat(RECORDS - 1), fc.array(change, { maxLength: 3 }), (seq, changes) => {
      let text = JSON.stringify(receipts[seq])
      for (const { at, cut, from, piece, bytes } of changes) {
        text = text.slice(0, at) + text.slice(from, from + piece) + bytes + text.slice(at + cut)
      }
      const value = parsed(text)
      const found = verifyReceipt(value, trust)
      if (typeof found === 'string') return changes.length > 0
      return found.signed === true && written.get(found.seq) === Object(value).line
    })
    const done = await fc.check(property, { seed, numRuns: ENDLESS, interruptAfterTimeLimit: seconds * 1000 })
    const failures =
      done.failed && done.counterexample !== null
        ? [`${fc.stringify(done.counterexample)}: ${String(done.errorInstance)}`]
        : []
    return { cases: done.numRuns, failures }
  },
}

async function receiptsOf(signer: ReturnType<typeof ephemeralSigner>): Promise<readonly Receipt[]> {
  const folder = mkdtempSync(join(tmpdir(), 'plat-'))
  try {
    const path = join(folder, 'audit.jsonl')
    await fillLedger(path, RECORDS - 1)
    await appendCheckpoint(path, signer)
    const receipts = await Promise.all(Array.from({ length: RECORDS }, (_, seq) => receiptFromLedger(path, seq)))
    return receipts.filter((receipt) => typeof receipt !== 'string')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
