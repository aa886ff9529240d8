import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import { type Kind, type Manifest, type ResourceStore, writeWhole } from '@plat/resources'
import { loadCedar } from '@plat/resources/cedar'
import { decodeRendered, type PolicyFile, policyFileSchema } from '@plat/resources/rendered'
import { renderAgents } from './agents.ts'
import { renderCredentials } from './auth.ts'
import { renderBudgets } from './budgets.ts'
import type { Declared } from './declared.ts'
import { renderModels } from './models.ts'
import { renderPolicies } from './policies.ts'
import { type Referenced, readReferenced, writeCredentials } from './referenced.ts'
import { renderSovereignty } from './sovereignty.ts'
import { renderUpstreams } from './upstreams.ts'

/** Pause after a failed look or write, in milliseconds. */
const RETRY_MS = 1000
/** Largest rendered file that a cluster can hold: a ConfigMap has at most so many bytes (document 3, "Limits"). */
const CONFIG_MAP_BYTES = 1024 * 1024
/** How often Secrets and ConfigMaps are looked at, in milliseconds. */
const LOOK_EVERY_MS = 2000

export interface RenderOptions {
  /** A file store also tells which files do not load. */
  readonly store: ResourceStore & { problems?(): readonly string[] }
  /** Gets `policies.json`, `upstreams.json`, `models.json`, `agents.json`, `budgets.json` and `sovereignty.json` (modes 0700 and 0600). */
  readonly outDir: string
  /** Gets the credential files of servers; the gateway reads them as `upstreamCredentialsDir`. */
  readonly credentialsDir: string
  /** Where Secrets stand as files: `<namespace>/<name>/<key>`. Of model keys only the paths are rendered. */
  readonly secretsDir: string
  /** Where ConfigMaps stand as files, likewise. */
  readonly configMapsDir: string
  /** ISO 4217: what the gateway counts in (`budgetCurrency`). */
  readonly currency: string
  readonly log: Log
  readonly clock: Clock
}

export interface Render {
  stop(): Promise<void>
  /** One line for everything that is declared and not in force. */
  refused(): readonly string[]
  /** One line for everything that is in force here and would not be on Kubernetes. */
  outgrown(): readonly string[]
}

/**
 * Renders the resources now, before it resolves, and again whenever they change. A file whose content stays the same is
 * not written.
 * @throws when the first rendering fails.
 */
export async function startRender(options: RenderOptions): Promise<Render> {
  const { store, log, clock } = options
  const stopping = new AbortController()
  let last: Rendered = { refused: [], outgrown: [], servers: [], referenced: '' }
  /** Renderings come one after the other, whether those before succeeded or not. */
  let rendering: Promise<void> = Promise.resolve()
  const renderAgain = () => {
    const turn = rendering.then(async () => {
      if (!stopping.signal.aborted) last = await renderOnce(options, last)
    })
    rendering = turn.catch(() => {})
    return turn
  }
  const look = async () => {
    try {
      const seen = textOf(await readReferenced(last.servers, options))
      if (seen !== last.referenced) await renderAgain()
    } catch (error) {
      log.error({ error: String(error) }, 'rendering failed; what was rendered before stays')
    }
  }
  const follow = async (kind: Kind) => {
    while (!stopping.signal.aborted) {
      try {
        for await (const event of store.watch(kind, null, stopping.signal)) {
          if (event.type === 'BOOKMARK') await renderAgain()
        }
      } catch (error) {
        log.error({ kind, error: String(error) }, 'rendering failed; what was rendered before stays')
        await pause(clock, RETRY_MS, stopping.signal)
      }
    }
  }
  await renderAgain()
  const following = [
    follow('Agent'),
    follow('MCPServer'),
    follow('ToolPolicy'),
    follow('BudgetPolicy'),
    follow('SovereigntyPolicy'),
  ]
  let looking: Promise<void> | null = null
  const stopLooking = clock.every(LOOK_EVERY_MS, () => {
    looking ??= look().finally(() => {
      looking = null
    })
  })
  return {
    refused: () => [...(store.problems?.() ?? []), ...last.refused],
    outgrown: () => last.outgrown,
    async stop() {
      stopping.abort()
      stopLooking()
      await Promise.all([...following, looking])
    },
  }
}

interface Rendered {
  readonly refused: readonly string[]
  readonly outgrown: readonly string[]
  readonly servers: Declared['servers']
  /** What the servers refer to, as it was rendered. */
  readonly referenced: string
}

/** Lines that were not there before are logged. */
async function renderOnce(options: RenderOptions, before: Rendered): Promise<Rendered> {
  const { store, outDir, credentialsDir, secretsDir, log } = options
  const servers = await all(store, 'MCPServer')
  const referenced = await readReferenced(servers, options)
  const policies = await all(store, 'ToolPolicy')
  const declared: Declared = {
    agents: await all(store, 'Agent'),
    servers,
    policies,
    cedar: policies.some(({ spec }) => (spec.cedar ?? '') !== '') ? await loadCedar() : null,
    budgets: await all(store, 'BudgetPolicy'),
    sovereignty: await all(store, 'SovereigntyPolicy'),
    currency: options.currency,
    bundles: referenced.bundles,
  }
  const policiesPath = join(outDir, 'policies.json')
  const toolPolicies = renderPolicies(declared, await readPrevious(policiesPath))
  const upstreams = renderUpstreams(declared)
  const budgets = renderBudgets(declared)
  const sovereignty = renderSovereignty(declared)
  const credentials = renderCredentials(servers, referenced.secrets)
  const outgrown: string[] = []
  const write = async (name: string, file: object) => {
    const bytes = await writeChanged(join(outDir, name), file, log)
    if (bytes > CONFIG_MAP_BYTES) outgrown.push(`${name} has ${bytes} bytes: a ConfigMap holds ${CONFIG_MAP_BYTES}`)
  }
  // Rules and credentials first: a server is not found before the rules for it are there, and what it is shown.
  await write('sovereignty.json', sovereignty.file)
  await writeCredentials(credentialsDir, credentials.files)
  await write('policies.json', toolPolicies.file)
  await write('budgets.json', budgets.file)
  await write('upstreams.json', upstreams.file)
  await write('models.json', renderModels(declared, secretsDir).file)
  await write('agents.json', renderAgents(declared).file)
  const refused = [toolPolicies, upstreams, budgets, sovereignty, credentials].flatMap((rendered) => rendered.refused)
  for (const line of refused) if (!before.refused.includes(line)) log.error({ refused: line }, 'resource refused')
  for (const line of outgrown)
    if (!before.outgrown.includes(line)) log.warn({ outgrown: line }, 'too large for a cluster')
  return { refused, outgrown, servers, referenced: textOf(referenced) }
}

function textOf({ secrets, bundles }: Referenced): string {
  return JSON.stringify([[...secrets], [...bundles]])
}

async function all<K extends Kind>(store: ResourceStore, kind: K): Promise<readonly Manifest<K>[]> {
  return (await store.list(kind, {})).items
}

/** The file of the last run, for its generation; a missing or strange one counts as none. */
async function readPrevious(path: string): Promise<PolicyFile | null> {
  const bytes = await readOrNull(path)
  const decoded = bytes === null ? null : decodeRendered(policyFileSchema, bytes, () => [])
  return decoded?.ok === true ? decoded.file : null
}

/** Answers the bytes of the file. */
async function writeChanged(path: string, file: object, log: Log): Promise<number> {
  const text = `${JSON.stringify(file, null, 2)}\n`
  const before = await readOrNull(path)
  if (before?.toString('utf8') === text) return before.length
  await writeWhole(path, text)
  log.info({ path }, 'rendered')
  return Buffer.byteLength(text)
}

async function readOrNull(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, resolve)
    signal.addEventListener('abort', () => {
      cancel()
      resolve()
    })
  })
}
