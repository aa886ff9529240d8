import { type Bundle, isSigned, readBundle, type SignaturePolicy } from '@plat/bundle'
import { type Clock, reasonOf, rfc3339 } from '@plat/core'
import type { Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { KeySource } from '@plat/tokens'
import type { BundleStore } from './store.ts'

/** Reasons to refuse a bundle. `content`: one of its files does not validate. */
export const REASONS = ['malformed', 'size', 'digest', 'signature', 'issuer', 'time', 'revision', 'content'] as const
export type RefusalReason = (typeof REASONS)[number]

/** The way a bundle arrived. */
export type Source = 'push' | 'pull' | 'drop'

export interface BundleMetrics {
  /** `plat_gateway_config_bundle_revision` */
  revision(revision: number): void
  /** `plat_gateway_config_bundles_applied_total` */
  applied(): void
  /** `plat_gateway_config_bundles_refused_total{reason}` */
  refused(reason: RefusalReason): void
}

export interface BundlesOptions {
  readonly config: {
    readonly trustedIssuers: readonly string[]
    readonly signaturePolicy: SignaturePolicy
    readonly maxBytes: number
    readonly leewaySeconds: number
  }
  readonly store: BundleStore
  readonly keys: Pick<KeySource, 'find'>
  /** Validates the files of a bundle; returns one line per problem. */
  readonly problemsOf: (files: ReadonlyMap<string, Uint8Array>) => readonly string[]
  /** Rejects if recording is mandatory and fails. */
  readonly record: (rec: Rec) => Promise<void>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: BundleMetrics
}

export type OfferResult =
  | { readonly kind: 'applied' | 'unchanged'; readonly issuer: string; readonly revision: number }
  /** The bundle may be offered again later: it is still being copied, or not valid yet. */
  | { readonly kind: 'waits'; readonly message: string }
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly message: string }

export interface Offer {
  readonly bytes: Uint8Array
  readonly source: Source
  /** False if the bundle may still be incomplete. */
  readonly isWhole: boolean
}

/** Checks bundles, one at a time, and applies the valid ones (docs/spec/gateway.md, `configBundle`). */
export class Bundles {
  readonly #options: BundlesOptions
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: BundlesOptions) {
    this.#options = options
    options.metrics.revision(options.store.inForce?.revision ?? 0)
  }

  /** Rejects if a valid bundle cannot be applied: the previous one stays in force, and this one may be offered again. */
  take(offer: Offer): Promise<OfferResult> {
    const mine = this.#last.then(() => this.#take(offer))
    this.#last = mine.catch(() => {})
    return mine
  }

  /** Resolves when no bundle is being applied. */
  async idle(): Promise<void> {
    await this.#last
  }

  async #take(offer: Offer): Promise<OfferResult> {
    const { metrics, log } = this.#options
    const { source } = offer
    try {
      const result = await this.#judge(offer)
      if (result.kind === 'refused') {
        metrics.refused(result.reason)
        log.error(
          { source, reason: result.reason, problem: result.message },
          'a configuration bundle is refused: the one before stays in force',
        )
      }
      return result
    } catch (error) {
      log.error({ source, error: reasonOf(error) }, 'a configuration bundle could not be put into force')
      throw error
    }
  }

  async #judge({ bytes, source, isWhole }: Offer): Promise<OfferResult> {
    const { config, keys, store } = this.#options
    const bundle = await readBundle(bytes, config.maxBytes)
    if ('kind' in bundle) {
      const { reason, message } = bundle
      if (reason !== 'incomplete') return refused(reason, message)
      return isWhole ? refused('malformed', message) : { kind: 'waits', message }
    }
    const { issuer, revision } = bundle.statement
    if (!isSigned(bundle.signatures, keys, config.signaturePolicy)) {
      return refused(
        'signature',
        `it is not signed by keys of configBundle.trustedKeyFiles as signaturePolicy ${config.signaturePolicy} requires`,
      )
    }
    if (bundle.id === store.inForce?.id && store.isPlaced) return { kind: 'unchanged', issuer, revision }
    const no = this.#refusal(bundle)
    if (no !== null) return no
    await this.#apply(bundle, source)
    return { kind: 'applied', issuer, revision }
  }

  /** Checks a bundle with a valid signature. Returns null if it may be applied. */
  #refusal({ statement, id, files }: Bundle): OfferResult | null {
    const { config, store, clock, problemsOf } = this.#options
    const { issuer, revision, issuedAt, notBefore, expiresAt } = statement
    const { trustedIssuers, leewaySeconds } = config
    if (trustedIssuers.length > 0 && !trustedIssuers.includes(issuer)) {
      return refused('issuer', `issuer ${JSON.stringify(issuer)} is not in configBundle.trustedIssuers`)
    }
    const { inForce } = store
    const isAgain = id === inForce?.id
    if (inForce !== null && revision <= inForce.revision && !isAgain) {
      return refused('revision', `revision ${revision} does not follow revision ${inForce.revision}, which is in force`)
    }
    const now = clock.now() / 1000
    if (!isAgain && expiresAt !== null && expiresAt + leewaySeconds <= now) {
      return refused('time', `it could be applied until ${rfc3339(expiresAt * 1000)}`)
    }
    const from = Math.max(issuedAt, notBefore ?? 0)
    if (from - leewaySeconds > now) return { kind: 'waits', message: `it is valid from ${rfc3339(from * 1000)} on` }
    const problems = problemsOf(new Map(files.map(({ name, bytes }) => [name, bytes])))
    return problems.length === 0 ? null : refused('content', problems.join('; '))
  }

  async #apply(bundle: Bundle, source: Source): Promise<void> {
    const { store, record, metrics, log } = this.#options
    const { issuer, revision } = bundle.statement
    await record({ kind: 'config', bundle: revision, issuer, id: bundle.id, source })
    try {
      await store.put(bundle)
    } finally {
      metrics.revision(store.inForce?.revision ?? 0)
    }
    metrics.applied()
    log.info({ source, issuer, revision, files: bundle.files.length }, 'a configuration bundle is in force')
  }
}

function refused(reason: RefusalReason, message: string): OfferResult {
  return { kind: 'refused', reason, message }
}
