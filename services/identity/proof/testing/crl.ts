import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { der, derOid, type Issued } from '@plat/testkit/authority'
import { readCertificate } from '../x509/certificate.ts'
import { serialOf, subjectOf } from '../x509/crl.ts'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS

export interface CrlOptions {
  /** Milliseconds since the epoch, as all times. */
  readonly now: number
  readonly revoked?: readonly Pick<Issued, 'der'>[]
  readonly issuedAt?: number
  readonly nextUpdate?: number
  /** Another key than that of the issuer. */
  readonly signedBy?: Issued
  readonly critical?: boolean
}

const certificateOf = (issued: Pick<Issued, 'der'>) => readCertificate(issued.der) ?? assert.fail('no certificate')
const utc = (ms: number) => der(0x17, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`))

/** A revocation list of an issuer, in DER. */
export function testCrl(issuer: Issued, options: CrlOptions): Buffer {
  const {
    now,
    revoked = [],
    issuedAt = now - HOUR_MS,
    nextUpdate = now + DAY_MS,
    signedBy = issuer,
    critical,
  } = options
  const isRsa = issuer.privateKey.asymmetricKeyType === 'rsa'
  const algorithm = der(0x30, derOid(isRsa ? '1.2.840.113549.1.1.11' : '1.2.840.10045.4.3.2'))
  const entries = revoked.map((one) => {
    const serial = serialOf(certificateOf(one))
    return der(0x30, der(0x02, Buffer.from(serial.padStart(serial.length + (serial.length % 2), '0'), 'hex')), utc(now))
  })
  const extension = der(0x30, derOid('2.5.29.28'), der(0x01, Buffer.from([0xff])), der(0x04, der(0x30)))
  const tbs = der(
    0x30,
    der(0x02, Buffer.from([1])),
    algorithm,
    subjectOf(certificateOf(issuer)),
    utc(issuedAt),
    utc(nextUpdate),
    ...(entries.length > 0 ? [der(0x30, ...entries)] : []),
    ...(critical === true ? [der(0xa0, der(0x30, extension))] : []),
  )
  const signature = sign('sha256', tbs, signedBy.privateKey)
  return der(0x30, tbs, algorithm, der(0x03, Buffer.from([0]), signature))
}
