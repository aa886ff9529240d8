import { hash } from 'node:crypto'
import { type FileWatch, watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import type { Counter } from '@plat/metrics'
import type { Log } from '@plat/process'
import { jurisdictionOf } from '@plat/resources/regions'
import { isLoopbackName } from '@plat/resources/regions/endpoint'
import type { Static } from 'typebox'
import type { Decision } from '../../../call/index.ts'
import type { GatewayMetrics } from '../../../metrics.ts'
import type { regoBlock } from '../config.ts'
import type { PolicyInput } from '../policy-input.ts'
import { actionsIn, verdictIn } from './answer.ts'
import { inputJson, listInputJson } from './input.ts'
import { type Deciding, joined, type Verdict } from './verdict.ts'

/** Maximum response of the engine, in bytes: a verdict for each of 10,000 tools. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024
/** A bearer token: visible ASCII without spaces. */
const TOKEN = /^[\x21-\x7e]{1,16384}$/

/** Name of the policy in decisions, denials and metrics. */
const NAME = 'rego'

export interface RegoOptions {
  readonly config: { readonly policy: { readonly rego: RegoConfig }; readonly policyReloadSeconds: number }
  /** CA bundle in addition to the system's; null: none. */
  readonly extraCA: string | null
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

type RegoConfig = Readonly<Static<typeof regoBlock.schema>>

/** An external engine with OPA's Data API: `POST <url>` with `{"input": …}`, response `{"result": …}`. */
export interface Rego {
  /** Returns the decision combined with the engine's verdict. Never rejects: a failing engine denies. */
  judge(input: PolicyInput, decision: Decision): Promise<Decision>
  /** Returns which tools the engine shows, by one request. `input` names no tool. Never rejects. */
  shows(input: PolicyInput, tools: readonly string[]): Promise<(tool: string) => boolean>
  /** Reads the token file. */
  check(): Promise<void>
  close(): void
}

/** Creates the client of the engine; null: none is configured. */
export function createRego(options: RegoOptions): Rego | null {
  return options.config.policy.rego.url === '' ? null : new RemoteRego(options)
}

class RemoteRego implements Rego {
  readonly #options: RegoOptions
  readonly #config: RegoConfig
  readonly #by: Deciding
  readonly #token: TokenFile | null
  readonly #evaluations: Counter<'outcome'>
  /** The reported fault. */
  #fault: string | null = null

  constructor(options: RegoOptions) {
    const { bearerTokenFile, url } = options.config.policy.rego
    this.#options = options
    this.#evaluations = options.metrics.counter('plat_gateway_rego_evaluations_total')
    this.#config = options.config.policy.rego
    // Approvals required by the engine are bound to this engine.
    this.#by = { policy: NAME, rule: null, ruleSha256: hash('sha256', JSON.stringify([NAME, url]), 'hex') }
    this.#token = bearerTokenFile === '' ? null : new TokenFile(bearerTokenFile, options)
  }

  async judge(input: PolicyInput, decision: Decision): Promise<Decision> {
    const verdict = await this.#ask(() => inputJson(input), verdictIn)
    const decided: Verdict = typeof verdict === 'string' ? { action: 'deny', reason: verdict } : verdict
    if (this.#config.enforcement === 'enforce') return joined(decision, NAME, decided, this.#by)
    return { ...decision, wouldBe: [...decision.wouldBe, { action: decided.action, policy: NAME }] }
  }

  async shows(input: PolicyInput, tools: readonly string[]): Promise<(tool: string) => boolean> {
    // Lists are not decisions: an engine in dryRun hides nothing and gets no request.
    if (this.#config.enforcement === 'dryRun') return () => true
    const question = () => listInputJson(input, tools)
    const actions = await this.#ask(question, (bytes) => actionsIn(bytes, tools))
    if (typeof actions === 'string') return () => false
    return (tool) => (actions.get(tool) ?? 'deny') !== 'deny'
  }

  async check(): Promise<void> {
    await this.#token?.check()
  }

  close(): void {
    this.#token?.close()
  }

  /** Returns the response decoded by `read`, or a one-line text with the problem. */
  async #ask<T extends object>(question: () => string, read: (bytes: Uint8Array) => T | null): Promise<T | string> {
    const answer = await this.#exchange(question).catch(faultOf)
    const understood = typeof answer === 'string' ? null : read(answer)
    const fault =
      typeof answer === 'string' ? answer : understood === null ? 'returned a response that is not a verdict' : null
    this.#evaluations.inc({ outcome: fault === null ? 'ok' : 'error' })
    this.#report(fault)
    return understood ?? `the policy engine (policy.rego) ${fault}`
  }

  async #exchange(question: () => string): Promise<Uint8Array | string> {
    const { dialer, extraCA } = this.#options
    const { url, timeoutMs } = this.#config
    const token = this.#token === null ? null : this.#token.value
    if (token === null && this.#token !== null) return 'cannot be queried: bearerTokenFile contains no token'
    const { status, bytes } = await dialer.fetchBytes(url, 'policy', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'user-agent': 'plat-gateway',
        ...(token !== null && { authorization: `Bearer ${token}` }),
      },
      body: question(),
      maxBytes: MAX_RESPONSE_BYTES,
      timeoutMs,
      ...placeOf(this.#config),
      ...(extraCA !== null && { caPEM: extraCA }),
    })
    return status === 200 ? bytes : `answered ${status}`
  }

  /** Logs when a fault begins, changes and ends, not for each call. */
  #report(fault: string | null): void {
    if (fault === this.#fault) return
    const { log } = this.#options
    const { url } = this.#config
    this.#fault = fault
    if (fault === null) log.info({ url }, 'the policy engine responds again')
    else log.error({ url, fault }, 'the policy engine returned no verdict: calls are denied')
  }
}

function faultOf(error: unknown): string {
  if (error instanceof TypeError) return 'cannot be sent the arguments'
  const fault = dialFault(error)
  return fault === 'timeout' ? 'did not answer in time' : `cannot be reached (${fault})`
}

/** `bearerTokenFile`, reread while the gateway runs. */
class TokenFile {
  readonly #watch: FileWatch
  #value: string | null = null

  constructor(path: string, { config, clock, log }: RegoOptions) {
    const failed = () =>
      log.error({ path }, 'policy.rego.bearerTokenFile contains no token, so the engine cannot be queried')
    this.#watch = watchFile({
      path,
      everyMs: config.policyReloadSeconds * 1000,
      clock,
      onBytes: (bytes) => {
        const text = bytes === null ? '' : Buffer.from(bytes).toString('utf8').trim()
        this.#value = TOKEN.test(text) ? text : null
        if (this.#value === null) failed()
      },
      onError: () => {
        this.#value = null
        failed()
      },
    })
  }

  /** Returns null if there is no valid token. */
  get value(): string | null {
    return this.#value
  }

  check(): Promise<void> {
    return this.#watch.check()
  }

  close(): void {
    this.#watch.stop()
  }
}

/** An engine on the same machine, such as a sidecar, runs where the gateway runs unless its jurisdiction is stated. */
function placeOf({ url, jurisdiction: stated }: RegoConfig): { readonly jurisdiction?: string } {
  const { hostname } = new URL(url)
  if (stated === '' && isLoopbackName(hostname)) return {}
  return { jurisdiction: jurisdictionOf({ upstream: url, jurisdiction: stated }, null) ?? '' }
}
