import { readFileSync } from 'node:fs'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { systemClock } from '@plat/core'
import { createAuthority, signedMessage } from '@plat/testkit/authority'
import { costTarget, type Families, type Row } from '../../test/fuzz/cost.ts'
import { binary, json, lengthOf, text } from '../../test/fuzz/families.ts'
import { credentialOf } from './exchange/providers/aws-sts.ts'
import { readSignedData } from './proof/cms/signed-data.ts'
import { oidOf, readDer } from './proof/der/reader.ts'
import { readTcbInfo } from './proof/tee/tcb-info.ts'
import { INTEL_QE_SIGNER, verifyTdx } from './proof/tee/tdx.ts'
import { readCertificate, readPemCertificates, readX5c } from './proof/x509/certificate.ts'
import { readCrl } from './proof/x509/crl.ts'
import { verifyPath } from './proof/x509/path.ts'
import { leafSpiffeId, parseSpiffeId } from './proof/x509/svid.ts'
import { Parameters } from './serve/parameters.ts'

const KIB = 1024
const MIB = 1024 * KIB
/** Largest body of a request to the broker. */
const BODY = 64 * KIB

const der = (tag: number, content: string) => String.fromCharCode(tag) + lengthOf(content.length) + content
const nested = (tag: number, depth: number, inner: string) => {
  let content = inner
  for (let at = 0; at < depth; at++) content = der(tag, content)
  return content
}

const now = systemClock.now()
const root = await createAuthority({ name: 'root', now })
const authority = await root.issue({ name: 'a', ca: true })
const content = (n: number) =>
  signedMessage({ content: Buffer.alloc(Math.floor(n / 2)), signers: [authority], indefinite: true }).toString('latin1')

const values: Families = {
  ...binary,
  'small values of a sequence': (n) => der(0x30, '\x05\0'.repeat(n / 2)),
  sequences: (n) => der(0x30, '0\0'.repeat(n / 2)),
  deep: (n) => nested(0x30, 20, '\x05\0'.repeat(n / 2)),
  'too deep': (n) => nested(0x30, Math.floor(n / 6), ''),
  'long identifier': (n) => der(6, '\x80'.repeat(n)),
  'identifier parts': (n) => der(6, '\x01'.repeat(n)),
  'indefinite lengths': (n) => '0\x80'.repeat(n / 4) + '\0\0'.repeat(n / 4),
}

function readValue(input: string): void {
  const value = readDer(Buffer.from(input, 'latin1'), { indefinite: true })
  oidOf(value)
}

const request = (type: string) => {
  const message = new IncomingMessage(new Socket())
  message.headers = { 'content-type': type }
  message.url = '/v1/token'
  return message
}

const quote = readFileSync(new URL('./proof/fixtures/tdx-quote.bin', import.meta.url)).toString('latin1')
const roots = readPemCertificates(
  readFileSync(new URL('./proof/roots/intel.pem', import.meta.url), 'latin1'),
  'intel.pem',
)
const rules = { roots, qeSigner: INTEL_QE_SIGNER, allowSeptVe: true, now }

const certificates = [root, authority].map((issued) => readCertificate(issued.der)).filter((each) => each !== null)
const [anchor, leaf] = certificates
if (anchor === undefined || leaf === undefined) throw new Error('the authority cannot be read')

const rows: readonly Row[] = [
  { parser: 'DER', limit: 256 * KIB, families: values, run: readValue },
  {
    parser: 'CMS',
    limit: BODY,
    families: { ...values, content },
    run: (input) => readSignedData(Buffer.from(input, 'latin1')),
  },
  {
    parser: 'certificates and SVIDs',
    limit: 256 * KIB,
    families: {
      ...values,
      ...text,
      begins: (n) => '-----BEGIN CERTIFICATE-----'.repeat(n / 27),
      lines: (n) => `-----BEGIN CERTIFICATE-----${'A\n'.repeat(n / 2)}`,
    },
    run: (input) => {
      const certificate = readCertificate(Buffer.from(input, 'latin1')) ?? readX5c(input)
      parseSpiffeId(input)
      return certificate === null ? readPemCertificates(input, 'a') : leafSpiffeId(certificate)
    },
  },
  {
    parser: 'certificate paths',
    limit: 64,
    families: { loops: (n) => 'a'.repeat(n), leaves: (n) => 'b'.repeat(n) },
    prepare: (input) => {
      const intermediates = [...input].map((letter) => (letter === 'a' ? anchor : leaf))
      return () => verifyPath(leaf, { intermediates, anchors: [], now })
    },
  },
  {
    parser: 'revocation lists of X.509',
    limit: MIB,
    families: {
      ...values,
      begins: (n) => '-----BEGIN X509 CRL-----'.repeat(n / 24),
      lines: (n) => `-----BEGIN X509 CRL-----${'A\n'.repeat(n / 2)}`,
    },
    run: (input) => readCrl(Buffer.from(input, 'latin1')),
  },
  {
    parser: 'evidence of TEEs',
    limit: BODY,
    families: {
      ...binary,
      'a longer quote': (n) => quote + '\0'.repeat(n),
      certificates: (n) => quote + '-----BEGIN CERTIFICATE-----'.repeat(n / 27),
    },
    run: (input) => verifyTdx(Buffer.from(input, 'latin1'), rules),
  },
  {
    parser: 'TCB information',
    limit: MIB,
    families: {
      ...json,
      levels: (n) =>
        `{"tcbInfo":{"id":"TDX","version":3,"tcbLevels":[${'{"tcb":{}},'.repeat(n / 11)}{}]},"signature":"00"}`,
      signatures: (n) => `{"tcbInfo":${'{"a":"","signature":"'.repeat(n / 21)}`,
    },
    run: (input) => readTcbInfo(Buffer.from(input)),
  },
  {
    parser: 'answers of AWS',
    limit: 64 * KIB,
    families: {
      ...text,
      elements: (n) => '<AccessKeyId>'.repeat(n / 13),
      declarations: (n) => '<?xml '.repeat(n / 6),
      spaces: (n) => `${' '.repeat(n)}<?xml?>`,
    },
    run: (input) => credentialOf({ clock: systemClock }, input),
  },
  {
    parser: 'forms and parameters',
    limit: BODY,
    families: {
      ...text,
      pairs: (n) => Array.from({ length: n / 8 }, (_, at) => `m${at}=a`).join('&'),
      percent: (n) => `a=${'%61'.repeat(n / 3)}`,
      plus: (n) => `a=${'+'.repeat(n)}`,
      'half escapes': (n) => `a=${'%'.repeat(n)}`,
    },
    run: (input) => Parameters.read(Buffer.from(input), request('application/x-www-form-urlencoded')),
  },
  {
    parser: 'forms and parameters',
    part: 'JSON',
    limit: BODY,
    families: json,
    run: (input) => Parameters.read(Buffer.from(input), request('application/json')),
  },
]

export const target = costTarget('cost/identity', rows)
