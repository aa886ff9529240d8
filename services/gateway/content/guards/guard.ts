import { type Clock, glob, type PoolBound, parseStrict, reasonOf, SharedPool } from '@plat/core'
import type { Dialer, DialOptions } from '@plat/http'
import type { Log } from '@plat/process'
import { jurisdictionOf } from '@plat/resources/regions'
import { type Identity, isNamed, type Target } from '../../call/index.ts'
import type { GuardConfig, GuardTarget } from './config.ts'
import type { ClassifierRequest, GuardType } from './types/type.ts'
import { windowsOf } from './windows.ts'

/** Maximum response size of a classifier, in bytes. */
const MAX_RESPONSE_BYTES = 262_144
/** Maximum number of concurrent requests for one text. */
const WINDOWS_AT_ONCE = 8

/**
 * Verdict of a guard about a text: `flagged` is bad, `unavailable` unknown. `busy`: the guard works, but has too many texts at
 * once, so the text was not sent to it; callers can cause that, so `failOpen` does not apply.
 */
export type GuardVerdict = 'clean' | 'flagged' | 'unavailable' | 'busy'

export interface GuardParts {
  readonly config: GuardConfig
  readonly type: GuardType
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  /** TLS trust roots and allowed destinations. */
  readonly connection: DialOptions
  readonly clock: Clock
  readonly log: Log
  /** Called with the duration of one text, in seconds. */
  readonly onTook: (seconds: number) => void
  /** Called for each text refused by a limit. */
  readonly onRefused?: ((bound: PoolBound) => void) | undefined
}

/** One injection classifier (docs/spec/gateway.md, `guards[]`). */
export class Guard {
  readonly config: GuardConfig
  /** Content of `apiKeyFile`, or null. */
  key: string | null = null
  readonly #parts: GuardParts
  readonly #url: URL
  /** Empty if unknown. */
  readonly #jurisdiction: string
  readonly #on: ReadonlySet<GuardTarget>
  readonly #namespaces: Names
  readonly #servers: Names
  readonly #tools: Names
  readonly #texts: SharedPool

  constructor(parts: GuardParts) {
    const { config } = parts
    this.config = config
    this.#parts = parts
    this.#url = new URL(config.url)
    this.#jurisdiction =
      jurisdictionOf({ upstream: config.url, region: config.region, jurisdiction: config.jurisdiction }, null) ?? ''
    const { onRefused } = parts
    this.#texts = new SharedPool({ name: 'guard_texts', onRefused })
    this.#on = new Set(config.on)
    this.#namespaces = namesOf(config.namespaces)
    this.#servers = namesOf(config.servers)
    this.#tools = namesOf(config.tools)
  }

  /** Returns whether it reads texts of this kind. */
  reads(target: GuardTarget): boolean {
    return this.#on.has(target)
  }

  /** Returns whether it applies to this caller and target. */
  guards({ namespace }: Identity, target: Target): boolean {
    const isServer = isNamed(target, (name) => fits(this.#servers, name))
    return isServer && fits(this.#namespaces, namespace) && fits(this.#tools, target.tool)
  }

  /** Number of texts in progress. */
  get reading(): number {
    return this.#texts.used
  }

  /** Classifies a text of the session `caller`, split into windows if it is long. Never rejects. */
  async judge(text: string, target: GuardTarget, caller: string): Promise<GuardVerdict> {
    if (this.#texts.acquire(caller) !== null) return 'busy'
    const { clock, onTook } = this.#parts
    const began = clock.monotonic()
    try {
      return await this.#read(text, target)
    } finally {
      this.#texts.release(caller)
      onTook((clock.monotonic() - began) / 1000)
    }
  }

  /** One bad window suffices; without one, an unreadable window makes the verdict `unavailable`. */
  async #read(text: string, target: GuardTarget): Promise<GuardVerdict> {
    const { parts, whole } = windowsOf(text, this.config.maxBytes)
    let judged: GuardVerdict = whole ? 'clean' : 'unavailable'
    for (let at = 0; at < parts.length; at += WINDOWS_AT_ONCE) {
      const scores = parts.slice(at, at + WINDOWS_AT_ONCE).map((part) => this.#score(part, target))
      for (const score of await Promise.all(scores)) {
        if (score === null) judged = 'unavailable'
        else if (score >= this.config.threshold) return 'flagged'
      }
    }
    return judged
  }

  /** Returns null without a valid response. */
  async #score(text: string, target: GuardTarget): Promise<number | null> {
    const { config, key } = this
    const { type, dialer, connection, clock, log } = this.#parts
    const failed = (error: string) => {
      log.warn({ guard: config.name, error }, 'no response from a guard')
      return null
    }
    try {
      if (config.apiKeyFile !== '' && key === null) return failed('its apiKeyFile cannot be read')
      const { url, headers, body }: ClassifierRequest = type.request({
        config,
        url: this.#url,
        text,
        target,
        key,
        now: clock.now(),
      })
      const request = {
        method: 'POST',
        headers,
        body,
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs: config.timeoutMs,
      } as const
      const { status, bytes } = await dialer.fetchBytes(url, 'guard', {
        ...request,
        ...connection,
        jurisdiction: this.#jurisdiction,
      })
      if (status !== 200) return failed(`status ${status}`)
      return type.score(parseStrict(bytes), config) ?? failed('its response has no score')
    } catch (error) {
      return failed(reasonOf(error))
    }
  }
}

/** Alternative patterns; null matches everything. */
type Names = readonly ((name: string) => boolean)[] | null

function namesOf(patterns: readonly string[]): Names {
  return patterns.length === 0 ? null : patterns.map(glob)
}

/** A missing name matches only without patterns. */
function fits(names: Names, name: string | null): boolean {
  if (names === null) return true
  if (name === null) return false
  for (const test of names) if (test(name)) return true
  return false
}
