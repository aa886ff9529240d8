import { type CloudConfig, createCloudCredentials } from '@plat/cloud'
import type { Clock, Ids, PoolObserver } from '@plat/core'
import type { Dialer } from '@plat/http'
import { type Cipher, fileKeys, type KeyStore, type KeyUri, readKeyUri, type Signer } from '@plat/keys'
import type { Log } from '@plat/process'
import { AzureKeys } from './azure.ts'
import { type KeyCallResult, KeyCalls } from './calls.ts'
import { ServiceCipher, type WrappingKey } from './cipher.ts'
import { Kms } from './kms.ts'
import { Helper } from './pkcs11/helper.ts'
import { Pkcs11Keys } from './pkcs11/keys.ts'
import { ServiceSigner, type SigningKey } from './signer.ts'

/** Time after which the public half of a key is fetched again, in milliseconds: an alias or a name may have another key then. */
export const DESCRIBE_EVERY_MS = 300_000

export interface KeyServicesOptions {
  /** `cloudCredentials` of gateway.json. */
  readonly cloudCredentials: CloudConfig
  readonly env: NodeJS.ProcessEnv
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Called for each finished operation. */
  readonly onCall?: (result: KeyCallResult) => void
  /** Observer of the queue. */
  readonly observer?: PoolObserver | undefined
}

/** Keys in files and in key services. */
export interface KeyServices extends KeyStore {
  close(): void
}

interface Opened {
  readonly signer: Promise<Signer>
  readonly until: number
}

/** Creates the key services; nothing is connected or started before a key of theirs is opened. */
export function createKeyServices(options: KeyServicesOptions): KeyServices {
  return new Services(options)
}

interface Backend {
  signingKey(uri: KeyUri, name: string): Promise<SigningKey>
  wrappingKey(uri: KeyUri, name: string): Promise<WrappingKey>
}

class Services implements KeyServices {
  readonly #options: KeyServicesOptions
  readonly #calls: KeyCalls
  readonly #clouds: ReturnType<typeof createCloudCredentials>
  readonly #helper: Helper
  readonly #backend: Backend
  readonly #signers = new Map<string, Opened>()

  constructor(options: KeyServicesOptions) {
    this.#options = options
    const { onCall = () => {}, cloudCredentials } = options
    this.#calls = new KeyCalls({ ...options, onCall })
    this.#clouds = createCloudCredentials({ ...options, config: { cloudCredentials } })
    this.#helper = new Helper(options)
    const parts = { ...options, clouds: this.#clouds, domain: cloudCredentials.aws.partitionDNSSuffix }
    this.#backend = backendOf({
      kms: new Kms(parts),
      azurekv: new AzureKeys(parts),
      pkcs11: new Pkcs11Keys(this.#helper),
    })
  }

  async openSigner(uriOrPath: string): Promise<Signer> {
    const uri = readKeyUri(uriOrPath)
    if (uri.kind === 'file') return await fileKeys.openSigner(uriOrPath)
    const known = this.#signers.get(uriOrPath)
    if (known !== undefined && this.#options.clock.now() < known.until) return await known.signer
    const signer = this.#describe(uri, uriOrPath, known?.signer ?? null)
    this.#signers.set(uriOrPath, { signer, until: this.#options.clock.now() + DESCRIBE_EVERY_MS })
    // A failure is not remembered.
    signer.catch(() => {
      if (this.#signers.get(uriOrPath)?.signer === signer) this.#signers.delete(uriOrPath)
    })
    return await signer
  }

  async openCipher(uriOrPath: string): Promise<Cipher> {
    const uri = readKeyUri(uriOrPath)
    if (uri.kind === 'file') return await fileKeys.openCipher(uriOrPath)
    const call = { service: uri.kind, operation: 'describe', key: uriOrPath } as const
    const key = await this.#calls.run(call, () => this.#backend.wrappingKey(uri, uriOrPath))
    return new ServiceCipher(key, { ...this.#options, calls: this.#calls })
  }

  close(): void {
    this.#clouds.close()
    this.#helper.close()
  }

  /** The same object as before if the key is the same. */
  async #describe(
    uri: Exclude<KeyUri, { kind: 'file' }>,
    name: string,
    before: Promise<Signer> | null,
  ): Promise<Signer> {
    const call = { service: uri.kind, operation: 'describe', key: name } as const
    const key = await this.#calls.run(call, () => this.#backend.signingKey(uri, name))
    const last = await before?.catch(() => null)
    return last?.kid === key.publicKey.kid ? last : new ServiceSigner(key, this.#calls)
  }
}

function backendOf({
  kms,
  azurekv,
  pkcs11,
}: {
  readonly kms: Kms
  readonly azurekv: AzureKeys
  readonly pkcs11: Pkcs11Keys
}): Backend {
  return {
    async signingKey(uri, name) {
      if (uri.kind === 'kms') return await kms.signingKey(uri, name)
      if (uri.kind === 'azurekv') return await azurekv.signingKey(uri, name)
      if (uri.kind === 'pkcs11') return await pkcs11.signingKey(uri, name)
      throw new Error(`${name}: is a file`)
    },
    async wrappingKey(uri, name) {
      if (uri.kind === 'kms') return await kms.wrappingKey(uri, name)
      if (uri.kind === 'azurekv') return await azurekv.wrappingKey(uri, name)
      if (uri.kind === 'pkcs11') return await pkcs11.wrappingKey(uri, name)
      throw new Error(`${name}: is a file`)
    },
  }
}
