import type { KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { readSecret } from '@plat/config'
import { reasonOf } from '@plat/core'
import { fileKeys, type KeyStore, type PublicJwk, type PublicKey, readPublicKeys, type Signer } from '@plat/keys'
import { type CheckpointKeys, hmacKeyOf } from '@plat/ledger'
import type { Log } from '@plat/process'

/** Minimum length of the HMAC key without a warning, in bytes: the length of its output (RFC 2104, section 3). */
const HMAC_KEY_BYTES = 32

export interface KeyringOptions {
  readonly config: {
    readonly auditCheckpointKey: string
    readonly auditCheckpointPQKey: string
    readonly auditCheckpointPublicKeyFiles: readonly string[]
  }
  /** Source of `PLAT_AUDIT_HMAC_KEY` or `PLAT_AUDIT_HMAC_KEY_FILE`. */
  readonly env: NodeJS.ProcessEnv
  readonly log: Log
  /** Default: keys in files only. */
  readonly keys?: KeyStore
}

/** A public key as served by `/v1/audit/jwks` (RFC 7517). */
export type PublishedKey = PublicJwk & { readonly kid: string; readonly alg: string; readonly use: 'sig' }

export interface Keyring {
  /** Current signing keys, or null. Reads all files again, so that a new key signs the next checkpoint. */
  current(): Promise<CheckpointKeys | null>
  /** The current key, keys used since the start, and retired keys. Reads no file: the endpoint is public. */
  published(): readonly PublishedKey[]
  /** The same keys, for verification. */
  keys(): readonly PublicKey[]
}

/** Rejects with one line that names the configuration key if a key cannot be used. */
export async function openKeyring({ config, env, log, keys: store = fileKeys }: KeyringOptions): Promise<Keyring> {
  const hmacKey = hmacKeyOf(readSecret(env, 'PLAT_AUDIT_HMAC_KEY'))
  warnIfShort(hmacKey, log)
  const signer = await openSlot('auditCheckpointKey', config.auditCheckpointKey, { log, store })
  const pq = await openSlot('auditCheckpointPQKey', config.auditCheckpointPQKey, { log, store })
  const signed = new Map<string, PublicKey>()
  let retired = await retiredKeys(config.auditCheckpointPublicKeyFiles)
  const current = async (): Promise<CheckpointKeys> => {
    const keys = { signer: await signer(), pq: await pq(), hmacKey }
    for (const one of [keys.signer, keys.pq]) if (one !== null) signed.set(one.kid, one.publicKey)
    return keys
  }
  await current()
  const keys = () => [...new Map([...signed.values(), ...retired].map((key) => [key.kid, key])).values()]
  return {
    async current() {
      retired = await retiredKeys(config.auditCheckpointPublicKeyFiles).catch((error: unknown) => {
        log.error({ error: reasonOf(error) }, 'retired keys cannot be read: the earlier ones stay published')
        return retired
      })
      const keys = await current()
      return keys.signer === null && keys.hmacKey === null ? null : keys
    },
    keys,
    published: () => keys().map(publishedKey),
  }
}

export function publishedKey({ kid, algorithm, jwk }: PublicKey): PublishedKey {
  return { ...jwk, kid, alg: algorithm.name, use: 'sig' }
}

function warnIfShort(key: KeyObject | null, log: Log): void {
  if (key !== null && (key.symmetricKeySize ?? 0) < HMAC_KEY_BYTES) {
    log.warn({}, `PLAT_AUDIT_HMAC_KEY is shorter than ${HMAC_KEY_BYTES} bytes: it could be guessed`)
  }
}

type Slot = () => Promise<Signer | null>

/** Reads the signer at each call; logs a file that becomes unusable and returns the last signer. */
async function openSlot(
  name: 'auditCheckpointKey' | 'auditCheckpointPQKey',
  uri: string,
  { log, store }: { readonly log: Log; readonly store: KeyStore },
): Promise<Slot> {
  if (uri === '') return async () => null
  const open = async () => {
    const signer = await store.openSigner(uri)
    const isPostQuantum = signer.alg.startsWith('ML-DSA-')
    if (isPostQuantum === (name === 'auditCheckpointPQKey')) return signer
    throw new Error(`holds an ${signer.alg} key; use ${isPostQuantum ? 'Ed25519, P-256 or RSA' : 'ML-DSA'}`)
  }
  let last = await open().catch((error: unknown) => {
    throw new Error(`${name}: ${reasonOf(error)}`)
  })
  return async () => {
    try {
      const signer = await open()
      if (signer.kid !== last.kid)
        log.info({ key: name, kid: signer.kid, before: last.kid }, 'checkpoints are signed with a new key')
      last = signer
    } catch (error) {
      log.error(
        { key: name, kid: last.kid, error: reasonOf(error) },
        'checkpoints are still signed with the previous key',
      )
    }
    return last
  }
}

async function retiredKeys(files: readonly string[]): Promise<readonly PublicKey[]> {
  const keys = await Promise.all(
    files.map(async (file, index) => {
      try {
        return readPublicKeys(await readFile(file, 'utf8'), file)
      } catch (error) {
        throw new Error(`auditCheckpointPublicKeyFiles[${index}]: ${reasonOf(error)}`)
      }
    }),
  )
  return keys.flat()
}
