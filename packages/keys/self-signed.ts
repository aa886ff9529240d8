import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { isIP } from 'node:net'
import { der, derOid } from './der.ts'

export interface SelfSignedOptions {
  /** The common name of subject and issuer. */
  readonly name: string
  /** DNS names and IPv4 or IPv6 addresses of the certificate. */
  readonly hosts: readonly string[]
  /** Milliseconds since the epoch. */
  readonly notBefore: number
  readonly notAfter: number
  /** Up to 19 unpredictable bytes. */
  readonly serial: Uint8Array
  /** 32 secret bytes: the key is the Ed25519 key of them, so that the same options create the same certificate. Absent: a new P-256 key. */
  readonly seed?: Uint8Array
}

export interface SelfSigned {
  readonly certificate: string
  readonly privateKey: string
}

const TAG = {
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  utf8: 0x0c,
  sequence: 0x30,
  set: 0x31,
  shortTime: 0x17,
  time: 0x18,
} as const

const OID = {
  commonName: '2.5.4.3',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  ed25519: '1.3.101.112',
  basicConstraints: '2.5.29.19',
  keyUsage: '2.5.29.15',
  extKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  subjectAltName: '2.5.29.17',
} as const

const TRUE = Buffer.from([0x01, 0x01, 0xff])

/** Creates a key and a certificate for a server, trusted only by clients that receive it (RFC 5280). It is self-signed and not a CA. */
export function createSelfSigned({ name, hosts, notBefore, notAfter, serial, seed }: SelfSignedOptions): SelfSigned {
  const privateKey =
    seed === undefined ? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey : ed25519Of(seed)
  const algorithm = sequence(derOid(seed === undefined ? OID.ecdsaWithSha256 : OID.ed25519))
  const known = sequence(der(TAG.set, sequence(derOid(OID.commonName), der(TAG.utf8, Buffer.from(name)))))
  const body = sequence(
    der(0xa0, der(TAG.integer, Buffer.from([2]))),
    der(TAG.integer, Buffer.concat([Buffer.from([1]), serial])),
    algorithm,
    known,
    sequence(time(notBefore), time(notAfter)),
    known,
    createPublicKey(privateKey).export({ format: 'der', type: 'spki' }),
    der(0xa3, sequence(...extensions(hosts))),
  )
  const signature = sign(seed === undefined ? 'sha256' : null, body, privateKey)
  const certificate = sequence(body, algorithm, der(TAG.bits, Buffer.from([0]), signature))
  return { certificate: pem(certificate), privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString() }
}

/** Returns the private key with these 32 bytes (RFC 8410). */
function ed25519Of(seed: Uint8Array): KeyObject {
  const version = der(TAG.integer, Buffer.from([0]))
  const key = sequence(version, sequence(derOid(OID.ed25519)), der(TAG.octets, der(TAG.octets, seed)))
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
}

function extensions(hosts: readonly string[]): readonly Buffer[] {
  const value = (content: Buffer) => der(TAG.octets, content)
  const digitalSignature = Buffer.from([TAG.bits, 0x02, 0x07, 0x80])
  return [
    sequence(derOid(OID.basicConstraints), TRUE, value(sequence())),
    sequence(derOid(OID.keyUsage), TRUE, value(digitalSignature)),
    sequence(derOid(OID.extKeyUsage), value(sequence(derOid(OID.serverAuth)))),
    sequence(derOid(OID.subjectAltName), value(sequence(...hosts.map(altName)))),
  ]
}

const DNS_NAME = 0x82
const IP_ADDRESS = 0x87

function altName(host: string): Buffer {
  const kind = isIP(host)
  if (kind === 0) return der(DNS_NAME, Buffer.from(host, 'ascii'))
  return der(IP_ADDRESS, kind === 4 ? Buffer.from(host.split('.').map(Number)) : bytesOfIPv6(host))
}

/** The URL parser shortens addresses; `::` replaces missing groups. */
function bytesOfIPv6(host: string): Buffer {
  const [head = '', tail = ''] = new URL(`http://[${host}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [before, after] = [groups(head), groups(tail)]
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0)
  return Buffer.from([...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 255]))
}

/** Encodes whole seconds; until 2049 with a two-digit year (RFC 5280, section 4.1.2.5). */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().slice(0, 'YYYY-MM-DDThh:mm:ss'.length).replace(/[-T:]/g, '')
  const isShort = digits < '2050'
  return der(isShort ? TAG.shortTime : TAG.time, Buffer.from(`${isShort ? digits.slice(2) : digits}Z`))
}

function sequence(...pieces: readonly Uint8Array[]): Buffer {
  return der(TAG.sequence, ...pieces)
}

function pem(bytes: Buffer): string {
  const lines = bytes.toString('base64').replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}
