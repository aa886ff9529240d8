import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { systemClock } from '@plat/core'
import fc from 'fast-check'
import { readPemCertificates } from '../x509/certificate.ts'
import { INTEL_QE_SIGNER, verifyTdx } from './tdx.ts'

/** Cases between two looks at the clock. */
const BATCH = 200
/** Bytes of the published quote that are quote, and those of them that the machine's signature covers. */
const QUOTE_BYTES = 4935
const SIGNED_BYTES = 632

/** No bytes make the reader of quotes throw, and no change of a real quote is accepted with anything else in its signed part. */
export const target = {
  name: 'proofs: TDX quotes',
  async run(seconds: number, seed: number): Promise<{ cases: number }> {
    const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url))
    const real = read('fixtures/tdx-quote.bin').subarray(0, QUOTE_BYTES)
    const roots = readPemCertificates(read('roots/intel.pem').toString('latin1'), 'intel.pem')
    const rules = { roots, qeSigner: INTEL_QE_SIGNER, allowSeptVe: true, now: systemClock.now() }
    const edit = fc.tuple(fc.nat(real.length - 1), fc.nat(3), fc.uint8Array({ maxLength: 4 }))
    const bytes = fc.array(edit, { minLength: 1, maxLength: 3 }).map((edits) => {
      let changed = real
      for (const [at, cut, put] of edits)
        changed = Buffer.concat([changed.subarray(0, at), put, changed.subarray(at + cut)])
      return changed
    })
    const end = systemClock.monotonic() + seconds * 1000
    let cases = 0
    for (let round = 0; systemClock.monotonic() < end; round++) {
      fc.assert(
        fc.property(bytes, (given) => {
          cases++
          if (typeof verifyTdx(given, rules) === 'string') return
          assert.deepEqual(given.subarray(0, SIGNED_BYTES), real.subarray(0, SIGNED_BYTES))
        }),
        { seed: seed + round, numRuns: BATCH },
      )
    }
    return { cases }
  },
}
