import { watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import {
  type Denial,
  deny,
  type Identity,
  isDenial,
  labelsByTrust,
  type Outcome,
  sandboxUrl,
  type Target,
  unresolved,
} from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import type { ExecConfig } from './config.ts'

export type { ExecConfig } from './config.ts'

/** Server name in policies, and second half of the scope. */
const SERVER = 'plat-exec'
const TOOL = 'exec'

/** Result of running code; `error` covers all failures in or before the sandbox. */
export type ExecResult = 'ok' | 'error' | 'timeout' | 'denied' | 'cancelled'

/** Sandbox of one session, with its credential. */
export interface Sandbox {
  /** `<endpoint>/exec` */
  readonly url: URL
  /** Header `X-Plat-Exec-Key`, or null if none is configured. */
  readonly key: string | null
}

export interface ExecOptions {
  readonly config: { readonly exec: ExecConfig; readonly policyReloadSeconds: number }
  readonly clock: Clock
  readonly log: Log
  /** Returns the scopes that a caller lacks, or null. */
  readonly missingScopes: (identity: Identity, server: string, tool: string) => string | null
  readonly metrics: GatewayMetrics
}

/** The code-interpreter proxy (docs/spec/gateway.md, `exec`). */
export interface ExecFeature {
  readonly stage: Stage<'resolve', 'identity', 'target'>
  /** Returns the sandbox of the caller's session. */
  sandbox(identity: Identity): Sandbox | Denial
  close(): void
}

/** Reads `exec.keyFile` now and every `policyReloadSeconds`; nothing is sent while it holds no key. */
export async function createExec(options: ExecOptions): Promise<ExecFeature> {
  const { exec } = options.config
  const key = await followKey(options)
  return {
    stage: createExecResolve(options),
    sandbox({ session, namespace }) {
      const url = sandboxUrl(exec.endpointTemplate, { session, namespace }, '/exec')
      if (url === null) return deny('unknown_session', 'the names of this session lead to no sandbox')
      const current = key.current()
      return isDenial(current) ? current : { url, key: current }
    },
    close: () => key.stop(),
  }
}

/** Checks the scope and the one tool of `plat-exec`. The sandbox was determined when the request was parsed. */
function createExecResolve({ config, missingScopes, metrics }: ExecOptions): ExecFeature['stage'] {
  const runs = metrics.counter('plat_gateway_exec_total')
  const target = targetOf(config.exec)
  return stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped: { target: unresolved },
    admit(call) {
      const scope = missingScopes(call.facts.identity, SERVER, TOOL)
      if (scope === null) return { target }
      runs.inc({ result: 'denied' })
      return deny('insufficient_scope', `scope ${scope} is required`, { data: { scope } })
    },
    settle(_, outcome) {
      const result = resultOf(outcome)
      if (result !== null) runs.inc({ result })
    },
  })
}

/** Output may contain anything the code has read: workspace files, packages, and network content. */
function targetOf({ taintLabels }: Pick<ExecConfig, 'taintLabels'>): Target {
  return {
    ...unresolved,
    key: SERVER,
    server: SERVER,
    tool: TOOL,
    trust: taintLabels.length === 0 ? 'trusted' : 'untrusted',
    labels: { ...labelsByTrust.trusted, taints: taintLabels },
    dataClass: 'internal',
    builtin: true,
  }
}

/** Returns null for a call that restarts after its approval. */
function resultOf({ result, code, status }: Outcome): ExecResult | null {
  if (result === 'rewound') return null
  if (result === 'denied' || result === 'cancelled') return result
  if (code === 'upstream_timeout') return 'timeout'
  return result === 'completed' && status < 400 ? 'ok' : 'error'
}

interface Key {
  current(): string | null | Denial
  stop(): void
}

/** Characters allowed in a header. */
const KEY = /^[\x21-\x7e]+$/

async function followKey({ config, clock, log }: ExecOptions): Promise<Key> {
  const path = config.exec.keyFile
  if (path === '') return { current: () => null, stop() {} }
  let current: string | null = null
  const watch = watchFile({
    path,
    everyMs: config.policyReloadSeconds * 1000,
    clock,
    onBytes(bytes) {
      const text = bytes === null ? '' : Buffer.from(bytes).toString('utf8').trim()
      current = KEY.test(text) ? text : null
      if (current === null) log.error({ path }, 'exec.keyFile holds no key: no code is run until it does')
    },
    onError() {
      current = null
      log.error({ path }, 'exec.keyFile cannot be read: no code is run until it can')
    },
  })
  await watch.check()
  const missing = deny('upstream_credential', 'exec.keyFile of this gateway holds no key')
  return { current: () => current ?? missing, stop: () => watch.stop() }
}
