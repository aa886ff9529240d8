import { systemClock } from '@plat/core'
import { type KeyUri, readKeyUri } from '@plat/keys'
import { costTarget, type Families, type Row } from '../../test/fuzz/cost.ts'
import { json, text } from '../../test/fuzz/families.ts'
import { AzureKeys } from './azure.ts'
import { Kms } from './kms.ts'
import { Pkcs11Keys } from './pkcs11/keys.ts'
import { keysIn, tokensIn } from './pkcs11/objects.ts'
import { MAX_LINE_BYTES, readHelperResponse } from './pkcs11/protocol.ts'
import { MAX_OUTPUT_BYTES } from './pkcs11/tool.ts'

/** Largest response of a key service, in bytes. */
const RESPONSE = 64 * 1024
const ARN = 'arn:aws:kms:eu-central-1:111122223333:key/1'
const KID = 'https://vault.vault.azure.net/keys/key/0123456789abcdef'

/** Reads a URI of a row. Throws when the file is loaded: a row whose URI is refused would measure nothing. */
function uriOf<K extends KeyUri['kind']>(kind: K, text: string): Extract<KeyUri, { readonly kind: K }> {
  const uri = readKeyUri(text)
  const isOfKind = (one: KeyUri): one is Extract<KeyUri, { readonly kind: K }> => one.kind === kind
  if (!isOfKind(uri)) throw new Error(`${text} is no URI of the kind ${kind}`)
  return uri
}

const KMS_KEY = uriOf('kms', `kms://aws/eu-central-1/${ARN}`)
const AZURE_KEY = uriOf('azurekv', 'azurekv://vault/key')
const PKCS11_KEY = uriOf('pkcs11', 'pkcs11:token=a;object=a')

/** A dialer whose responses are all the same. */
const dialerOf = (body: string, status: number) => ({
  fetchBytes: async () => ({ status, headers: {}, bytes: Buffer.from(body) }),
})

/** Ends the work of one operation that fails; a row measures all of them. */
async function orFailed(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch {}
}

const { digits = String, spaces = String, base64 = String } = text
const texts: Families = { ...{ digits, spaces, base64 }, letters: (n) => 'A'.repeat(n) }

/** Hostile texts in a member of an object. */
const inMember = (members: object, name: string): Families =>
  Object.fromEntries(
    Object.entries(texts).map(([family, make]) => [
      `${family} in ${name}`,
      (n: number) => JSON.stringify({ ...members, [name]: make(n) }),
    ]),
  )

const kms: Families = {
  ...json,
  ...inMember({ KeyId: ARN, SigningAlgorithms: ['ECDSA_SHA_256'] }, 'PublicKey'),
  ...inMember({ KeyId: ARN, PublicKey: 'AAAA' }, 'KeySpec'),
  ...inMember({}, '__type'),
  ...inMember({ CiphertextBlob: 'AAAA' }, 'KeyId'),
  algorithms: (n) => JSON.stringify({ KeyId: ARN, PublicKey: 'AAAA', SigningAlgorithms: Array(n / 4).fill('A') }),
}

const azure: Families = {
  ...json,
  ...inMember({ key: { kid: KID, kty: 'EC' } }, 'error'),
  ...Object.fromEntries(
    ['kid', 'kty', 'n', 'x'].flatMap((name) =>
      Object.entries(inMember({ kid: KID, kty: 'RSA', n: 'AAAA', e: 'AQAB' }, name)).map(([family, make]) => [
        `key: ${family}`,
        (n: number) => `{"key":${make(n)}}`,
      ]),
    ),
  ),
}

const helper: Families = {
  ...json,
  ...inMember({ id: 1 }, 'result'),
  messages: (n) => JSON.stringify({ id: 1, error: { kind: 'refused', message: '\u0001a'.repeat(n / 7) } }),
  keys: (n) => JSON.stringify({ id: 1, result: { serial: '1', id: '1', publicKey: '-----BEGIN '.repeat(n / 11) } }),
}

const rows: readonly Row[] = [200, 400].flatMap((status): readonly Row[] => [
  {
    parser: 'answers of AWS KMS',
    part: `status ${status}`,
    limit: RESPONSE,
    families: kms,
    async run(input) {
      const clouds = { aws: async () => ({ accessKeyId: 'a', secretAccessKey: 'a', sessionToken: null }) }
      const keys = new Kms({ dialer: dialerOf(input, status), clouds, clock: systemClock, env: {}, domain: '' })
      await orFailed(() => keys.signingKey(KMS_KEY, 'a'))
      await orFailed(() => keys.wrappingKey(KMS_KEY, 'a'))
    },
  },
  {
    parser: 'answers of Azure Key Vault',
    part: `status ${status}`,
    limit: RESPONSE,
    families: azure,
    async run(input) {
      const keys = new AzureKeys({ dialer: dialerOf(input, status), clouds: { azure: async () => 'a' }, env: {} })
      await orFailed(() => keys.signingKey(AZURE_KEY, 'a'))
      await orFailed(() => keys.wrappingKey(AZURE_KEY, 'a'))
    },
  },
])

const helperRow: Row = {
  parser: 'responses of PKCS#11 helpers',
  limit: MAX_LINE_BYTES,
  families: helper,
  async run(input) {
    const response = readHelperResponse(input)
    if (response === null || !('result' in response)) return
    const keys = new Pkcs11Keys({ request: async () => response.result })
    await orFailed(() => keys.signingKey(PKCS11_KEY, 'a'))
  },
}

const slotOf = (at: number) =>
  `Slot ${at} (0x${at.toString(16)}): a\n  token label        : a\n  serial num         : ${at}\n`
const keyOf = (at: number) =>
  `Private Key Object; EC\n  label:      a\n  ID:         ${at.toString(16).padStart(8, '0')}\n`
const many = (n: number, each: (at: number) => string) =>
  Array.from({ length: Math.ceil(n / each(0).length) }, (_, at) => each(at)).join('')

const listings: Families = {
  ...text,
  slots: (n) => many(n, slotOf),
  'heads of slots': (n) => 'Slot 0 (0x0)\n'.repeat(n / 13),
  'a slot of many members': (n) => `${slotOf(0)}${'  a : a\n'.repeat(n / 8)}`,
  'a slot with a long number': (n) => `Slot ${'0'.repeat(n)} (0x0)\n`,
  'a slot with a long id': (n) => `Slot 0 (0x${'0'.repeat(n)}\n`,
  keys: (n) => many(n, keyOf),
  'heads of keys': (n) => 'Private Key Object\n'.repeat(n / 19),
  'a key of many members': (n) => `${keyOf(0)}${'  a : a\n'.repeat(n / 8)}`,
  'a key with a long id': (n) => `Private Key Object\n  ID: ${'0'.repeat(n)}g\n`,
  'a key with a long label': (n) => `Private Key Object\n  label: ${' '.repeat(n)}a\n  ID: 00\n`,
  colons: (n) => `Private Key Object\n${':'.repeat(n)}`,
}

const listingRow: Row = {
  ...{ parser: 'listings of pkcs11-tool', limit: MAX_OUTPUT_BYTES, families: listings },
  run(input) {
    tokensIn(input)
    for (const kind of ['private', 'secret'] as const) keysIn(input, { object: 'a', id: null }, kind)
  },
}

export const target = costTarget('cost/key services', [...rows, helperRow, listingRow])
