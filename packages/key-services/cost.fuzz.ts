import { systemClock } from '@plat/core'
import { readKeyUri } from '@plat/keys'
import { costTarget, type Families, type Row } from '../../test/fuzz/cost.ts'
import { json, text } from '../../test/fuzz/families.ts'
import { AzureKeys } from './azure.ts'
import { Kms } from './kms.ts'
import { Pkcs11Keys } from './pkcs11/keys.ts'
import { MAX_LINE_BYTES, readHelperResponse } from './pkcs11/protocol.ts'

/** Largest response of a key service, in bytes. */
const RESPONSE = 64 * 1024
const ARN = 'arn:aws:kms:eu-central-1:111122223333:key/1'
const KID = 'https://vault.example/keys/key/0123456789abcdef'

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
      const uri = readKeyUri(`kms://${ARN}`)
      if (uri.kind !== 'kms') return
      const clouds = { aws: async () => ({ accessKeyId: 'a', secretAccessKey: 'a', sessionToken: null }) }
      const keys = new Kms({ dialer: dialerOf(input, status), clouds, clock: systemClock, env: {}, domain: '' })
      await orFailed(() => keys.signingKey(uri, 'a'))
      await orFailed(() => keys.wrappingKey(uri, 'a'))
    },
  },
  {
    parser: 'answers of Azure Key Vault',
    part: `status ${status}`,
    limit: RESPONSE,
    families: azure,
    async run(input) {
      const uri = readKeyUri('azurekv://vault.example/key')
      if (uri.kind !== 'azurekv') return
      const keys = new AzureKeys({ dialer: dialerOf(input, status), clouds: { azure: async () => 'a' }, env: {} })
      await orFailed(() => keys.signingKey(uri, 'a'))
      await orFailed(() => keys.wrappingKey(uri, 'a'))
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
    const uri = readKeyUri('pkcs11:token=a;object=a')
    const keys = new Pkcs11Keys({ request: async () => response.result })
    if (uri.kind === 'pkcs11') await orFailed(() => keys.signingKey(uri, 'a'))
  },
}

export const target = costTarget('cost/key services', [...rows, helperRow])
