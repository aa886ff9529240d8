import type { KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { readSecret } from '@plat/config'
import { reasonOf } from '@plat/core'
import { openSigner, type PublicJwk, type PublicKey, readPublicKeys, type Signer } from '@plat/keys'
import { type CheckpointKeys, hmacKeyOf } from '@plat/ledger'
import type { Log } from '@plat/process'

/** Least length of the HMAC key that is not complained about, in bytes: as long as what it makes (RFC 2104, section 3). */
const HMAC_KEY_BYTES = 32

export interface KeyringOptions {
  readonly config: {
    readonly auditCheckpointKey: string
    readonly auditCheckpointPQKey: string
    readonly auditCheckpointPublicKeyFiles: readonly string[]
  }
  /** Where `PLAT_AUDIT_HMAC_KEY` or `PLAT_AUDIT_HMAC_KEY_FILE` is read from. */
  readonly env: NodeJS.ProcessEnv
  readonly log: Log
}

/** A public key as `/v1/audit/jwks` shows it (RFC 7517). */
export type PublishedKey = PublicJwk & { readonly kid: string; readonly alg: string; readonly use: 'sig' }

/** The keys of checkpoints. */
export interface Keyring {
  /** What signs now; null: nothing does. All files are read anew, so that a new key signs the next checkpoint. */
  current(): Promise<CheckpointKeys | null>
  /** What signs now, what signed since the start, and what is retired. Reads nothing: anybody may ask. */
  published(): readonly PublishedKey[]
  /** The same, to verify with. */
  keys(): readonly PublicKey[]
}

/** Rejects with one line that names the configuration key when a key cannot be used. */
export async function openKeyring({ config, env, log }: KeyringOptions): Promise<Keyring> {
  const hmacKey = hmacKeyOf(readSecret(env, 'PLAT_AUDIT_HMAC_KEY'))
  tellShort(hmacKey, log)
  const signer = await openSlot('auditCheckpointKey', config.auditCheckpointKey, log)
  const pq = await openSlot('auditCheckpointPQKey', config.auditCheckpointPQKey, log)
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
        log.error({ error: reasonOf(error) }, 'the retired keys that were read before stay published')
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

function tellShort(key: KeyObject | null, log: Log): void {
  if (key !== null && (key.symmetricKeySize ?? 0) < HMAC_KEY_BYTES) {
    log.warn({}, `PLAT_AUDIT_HMAC_KEY is shorter than ${HMAC_KEY_BYTES} bytes: it could be guessed`)
  }
}

type Slot = () => Promise<Signer | null>

/** Reads the signer whenever it is asked; a file that cannot be used any more leaves the last one, and says so. */
async function openSlot(name: 'auditCheckpointKey' | 'auditCheckpointPQKey', uri: string, log: Log): Promise<Slot> {
  if (uri === '') return async () => null
  const open = async () => {
    const signer = await openSigner(uri)
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
        log.info({ key: name, kid: signer.kid, before: last.kid }, 'checkpoints have a new key')
      last = signer
    } catch (error) {
      log.error({ key: name, kid: last.kid, error: reasonOf(error) }, 'the last key of checkpoints goes on signing')
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
