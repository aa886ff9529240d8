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
  type Target,
  unresolved,
} from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import type { ExecConfig } from './config.ts'
import { endpointOf } from './endpoint.ts'

export type { ExecConfig } from './config.ts'

/** What policies match, and the second half of the scope. */
const SERVER = 'plat-exec'
const TOOL = 'exec'

/** How running code ended: `error` stands for everything that went wrong in or before the sandbox. */
export type ExecResult = 'ok' | 'error' | 'timeout' | 'denied' | 'cancelled'

/** Where the code of one session runs, and what its sandbox is shown. */
export interface Sandbox {
  /** `<endpoint>/exec` */
  readonly url: URL
  /** Header `X-Plat-Exec-Key`; null: none is configured. */
  readonly key: string | null
}

export interface ExecOptions {
  readonly config: { readonly exec: ExecConfig; readonly policyReloadSeconds: number }
  readonly clock: Clock
  readonly log: Log
  /** Which scopes a caller lacks; null: none. */
  readonly missingScopes: (identity: Identity, server: string, tool: string) => string | null
  readonly metrics: GatewayMetrics
}

/** The code-interpreter proxy (docs/spec/gateway.md, `exec`). */
export interface ExecFeature {
  readonly stage: Stage<'resolve', 'identity', 'target'>
  /** The sandbox of a caller's own session. */
  sandbox(identity: Identity): Sandbox | Denial
  close(): void
}

/** Reads `exec.keyFile` now, and again every `policyReloadSeconds`: while it holds no key, nothing is sent. */
export async function createExec(options: ExecOptions): Promise<ExecFeature> {
  const { exec } = options.config
  const key = await followKey(options)
  return {
    stage: createExecResolve(options),
    sandbox({ session, namespace }) {
      const url = endpointOf(exec.endpointTemplate, { session, namespace })
      if (url === null) return deny('unknown_session', 'the names of this session lead to no sandbox')
      const shown = key.current()
      return isDenial(shown) ? shown : { url, key: shown }
    },
    close: () => key.stop(),
  }
}

/** The scope, then the one tool of `plat-exec`. Whose sandbox is meant was asked when the request was read. */
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

/** Code puts out whatever it has read: files of its workspace, packages, and what its sandbox lets it reach. */
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

/** Null: the call begins again, since a person let it. */
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

/** What can stand in a header. */
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
