import assert from 'node:assert/strict'
import { systemClock } from '@plat/core'
import { createAuthority, signedMessage } from '@plat/testkit/authority'
import fc from 'fast-check'
import { readCertificate } from '../x509/certificate.ts'
import { readSignedData } from './signed-data.ts'

/** Cases between two looks at the clock. */
const BATCH = 500

/** Bytes of `sample` with some changed, cut out or put in. */
function near(sample: Buffer): fc.Arbitrary<Buffer> {
  const edit = fc.tuple(fc.nat(sample.length - 1), fc.nat(3), fc.uint8Array({ maxLength: 4 }))
  return fc.array(edit, { minLength: 1, maxLength: 4 }).map((edits) => {
    let bytes = sample
    for (const [at, cut, put] of edits) bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + cut)])
    return bytes
  })
}

/**
 * No bytes make the readers of CMS and certificates throw, and no change of a signed message leaves another content under
 * the same signature.
 */
export const target = {
  name: 'proofs: DER, certificates and CMS',
  async run(seconds: number, seed: number): Promise<{ cases: number }> {
    const signer = await createAuthority({ name: 'signer', key: 'RSA', now: systemClock.now() })
    const certificate = readCertificate(signer.der) ?? assert.fail('the signer cannot be read')
    const content = Buffer.from('what was signed')
    const messages = [true, false].map((indefinite) => signedMessage({ content, signers: [signer], indefinite }))
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 300 }), ...[...messages, signer.der].map(near))
    const end = systemClock.monotonic() + seconds * 1000
    let cases = 0
    for (let round = 0; systemClock.monotonic() < end; round++) {
      fc.assert(
        fc.property(bytes, (given) => {
          cases++
          readCertificate(given)
          const message = readSignedData(given)
          if (message?.signedBy(certificate.x509) === true) assert.deepEqual(Buffer.from(message.content), content)
        }),
        { seed: seed + round, numRuns: BATCH },
      )
    }
    return { cases }
  },
}
