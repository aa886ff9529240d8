import path from 'node:path'
import { type BundleContent, type SignaturePolicy, writeBundle } from '@plat/bundle'
import { TestClock } from '@plat/core'
import { ephemeralSigner, type LocalSigner } from '@plat/keys'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { Bundles, type BundlesOptions, type OfferResult, type RefusalReason, type Source } from '../bundles.ts'
import { BundleStore, type StoreOptions } from '../store.ts'

/** Files by name. */
export type Texts = Readonly<Record<string, string>>

/** Members of a test's bundle statement, merged over valid ones. */
export type Saying = Partial<BundleContent['statement']>

export interface BundleFixture {
  readonly dir: string
  readonly statePath: string
  readonly clock: TestClock
  readonly signer: LocalSigner
  readonly records: object[]
  readonly refused: RefusalReason[]
  /** Returns the gauge of the revision. */
  revision(): number
  bundle(revision: number, texts: Texts, saying?: Saying, signers?: readonly LocalSigner[]): Buffer
  /** Opens folder and state as a starting gateway does. */
  open(own?: Partial<StoreOptions>): Promise<Opened>
}

export interface Opened {
  readonly store: BundleStore
  readonly bundles: Bundles
  take(bytes: Uint8Array, isWhole?: boolean, source?: Source): Promise<OfferResult>
  /** Returns the reason of a refusal, otherwise the kind of the result. */
  verdict(bytes: Uint8Array): Promise<string>
}

export interface BundleFixtureOptions {
  readonly trustedIssuers?: readonly string[]
  readonly signaturePolicy?: SignaturePolicy
  /** Trusted beside the fixture's own key. */
  readonly keys?: readonly LocalSigner[]
  readonly maxBytes?: number
  readonly leewaySeconds?: number
  readonly options?: Partial<BundlesOptions>
}

/** A folder for bundles, a trusted key and a clock. */
export async function setUp({
  trustedIssuers = [],
  signaturePolicy = 'classical',
  keys = [],
  maxBytes = 1024 * 1024,
  leewaySeconds = 60,
  options,
}: BundleFixtureOptions = {}): Promise<BundleFixture> {
  const root = tempFolder()
  const dir = path.join(root, 'live')
  const statePath = path.join(root, 'state.json')
  const clock = new TestClock()
  const signer = ephemeralSigner()
  const records: object[] = []
  const refused: RefusalReason[] = []
  let revision = -1
  const metrics: BundlesOptions['metrics'] = {
    revision: (value) => {
      revision = value
    },
    applied() {},
    refused: (reason) => void refused.push(reason),
  }
  return {
    dir,
    statePath,
    clock,
    signer,
    records,
    refused,
    revision: () => revision,
    bundle(number, texts, saying = {}, signers = [signer]) {
      const issuedAt = Math.floor(clock.now() / 1000)
      const statement = { issuer: 'ops', revision: number, issuedAt, notBefore: null, expiresAt: null, ...saying }
      return writeBundle({ statement, files: filesOf(texts) }, signers)
    },
    async open(own = {}) {
      const store = await BundleStore.open({ dir, statePath, log: silentLog, ...own })
      const bundles = new Bundles({
        config: { trustedIssuers, signaturePolicy, maxBytes, leewaySeconds },
        store,
        keys: { find: (kid) => [signer, ...keys].find((one) => one.kid === kid)?.publicKey ?? null },
        problemsOf: () => [],
        record: async (rec) => void records.push(rec),
        clock,
        log: silentLog,
        metrics,
        ...options,
      })
      return opened(store, bundles)
    },
  }
}

function opened(store: BundleStore, bundles: Bundles): Opened {
  const take: Opened['take'] = (bytes, isWhole = true, source = 'push') => bundles.take({ bytes, source, isWhole })
  return {
    store,
    bundles,
    take,
    async verdict(bytes) {
      const result = await take(bytes)
      return result.kind === 'refused' ? result.reason : result.kind
    },
  }
}

export function filesOf(texts: Texts): BundleContent['files'] {
  return Object.entries(texts).map(([name, text]) => ({ name, bytes: Buffer.from(text) }))
}
