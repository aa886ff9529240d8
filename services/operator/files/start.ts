import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '@plat/core'
import { createDialer } from '@plat/http'
import type { Log } from '@plat/process'
import { type Kind, type Manifest, type ResourceStore, writeWhole } from '@plat/resources'
import { loadCedar } from '@plat/resources/cedar'
import { decodeRendered, type PolicyFile, policyFileSchema } from '@plat/resources/rendered'
import { Apis } from '../openapi/apis.ts'
import { renderCredentials } from '../render/auth.ts'
import type { Declared } from '../render/declared.ts'
import { hasCedar, type RenderedFile, renderEverything } from '../render/everything.ts'
import type { KeyFileOf } from '../render/models.ts'
import { CONFIG_MAP_BYTES } from '../render/size/packed.ts'
import { type Referenced, readReferenced, writeCredentials } from './referenced.ts'

/** Pause after a failed look or write, in milliseconds. */
const RETRY_MS = 1000
/** How often Secrets and ConfigMaps are looked at, in milliseconds. */
const LOOK_EVERY_MS = 2000
/** How long a rendering waits for OpenAPI documents, the first and later ones, in milliseconds; they are rendered as soon as they are read. */
const DOCUMENTS_FIRST_MS = 10_000
const DOCUMENTS_MS = 1000

export const FILE_KINDS = [
  'Agent',
  'MCPServer',
  'ToolPolicy',
  'BudgetPolicy',
  'MemoryStore',
  'SovereigntyPolicy',
  'TrustTier',
] as const satisfies readonly Kind[]

export interface RenderOptions {
  /** A file store also reports invalid files. */
  readonly store: ResourceStore & { problems?(): readonly string[] }
  /** Gets `policies.json`, `upstreams.json`, `models.json`, `agents.json`, `budgets.json`, `memory.json` and `sovereignty.json` (modes 0700 and 0600). */
  readonly outDir: string
  /** Gets the credential files of servers; the gateway reads them as `upstreamCredentialsDir`. */
  readonly credentialsDir: string
  /** Where Secrets stand as files: `<namespace>/<name>/<key>`. Of model keys only the paths are rendered. */
  readonly secretsDir: string
  /** Where ConfigMaps stand as files, likewise. */
  readonly configMapsDir: string
  /** Base of the paths of OpenAPI documents; absent: files are refused. */
  readonly documentsDir?: string
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
  /** The resources that were rendered last; another object after each rendering. */
  declared(): Declared
}

/**
 * Renders the resources now, before it resolves, and again whenever they change. A file whose content stays the same is
 * not written.
 * @throws when the first rendering fails.
 */
export async function startRender(options: RenderOptions): Promise<Render> {
  const { store, log, clock } = options
  const stopping = new AbortController()
  const dialer = createDialer({ clock, log })
  const apis = new Apis({ dialer, clock, log, onChange: () => void renderAgain().catch(rendersNot) })
  let last: Rendered = { refused: [], outgrown: [], declared: nothingDeclared(options.currency), referenced: '' }
  /** Renderings come one after the other, whether those before succeeded or not. */
  let rendering: Promise<void> = Promise.resolve()
  const renderAgain = () => {
    const turn = rendering.then(async () => {
      if (!stopping.signal.aborted) last = await renderOnce({ ...options, apis }, last)
    })
    rendering = turn.catch(() => {})
    return turn
  }
  const rendersNot = (error: unknown) =>
    log.error({ error: String(error) }, 'rendering failed; the previous output stays')
  const look = async () => {
    const seen = textOf(await readReferenced(last.declared.servers, options))
    if (seen !== last.referenced) await renderAgain()
  }
  const follow = async (kind: Kind) => {
    while (!stopping.signal.aborted) {
      try {
        for await (const event of store.watch(kind, null, stopping.signal)) {
          if (event.type === 'BOOKMARK') await renderAgain()
        }
      } catch (error) {
        log.error({ kind, error: String(error) }, 'rendering failed; the previous output stays')
        await pause(clock, RETRY_MS, stopping.signal)
      }
    }
  }
  const close = () => {
    apis.close()
    dialer.close()
  }
  await renderAgain().catch((error: unknown) => {
    close()
    throw error
  })
  const following = FILE_KINDS.map(follow)
  const stopLooking = repeat(clock, () => look().catch(rendersNot))
  return {
    refused: () => [...(store.problems?.() ?? []), ...last.refused],
    outgrown: () => last.outgrown,
    declared: () => last.declared,
    async stop() {
      stopping.abort()
      await Promise.all([...following, stopLooking()])
      close()
    },
  }
}

/** Runs a job every `LOOK_EVERY_MS`, unless it still runs. Returns a function that stops it, and resolves when it has ended. */
function repeat(clock: Clock, job: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null
  const stop = clock.every(LOOK_EVERY_MS, () => {
    running ??= job().finally(() => {
      running = null
    })
  })
  return async () => {
    stop()
    await running
  }
}

interface Rendered {
  readonly refused: readonly string[]
  readonly outgrown: readonly string[]
  readonly declared: Declared
  /** References of the servers at the last rendering. */
  readonly referenced: string
}

function nothingDeclared(currency: string): Declared {
  const none = { agents: [], servers: [], policies: [], budgets: [], memory: [], sovereignty: [], tiers: [] }
  return { ...none, cedar: null, home: null, currency, bundles: { texts: new Map(), withheld: new Map() } }
}

/** Lines that were not there before are logged. */
async function renderOnce(options: RenderOptions & { readonly apis: Apis }, before: Rendered): Promise<Rendered> {
  const { store, outDir, credentialsDir, secretsDir, log, apis } = options
  const servers = await all(store, 'MCPServer')
  const referenced = await readReferenced(servers, options)
  apis.current(servers, referenced.documents)
  await apis.settled(before.referenced === '' ? DOCUMENTS_FIRST_MS : DOCUMENTS_MS)
  const policies = await all(store, 'ToolPolicy')
  const declared: Declared = {
    agents: await all(store, 'Agent'),
    servers,
    policies,
    cedar: hasCedar(policies) ? await loadCedar() : null,
    budgets: await all(store, 'BudgetPolicy'),
    memory: await all(store, 'MemoryStore'),
    sovereignty: await all(store, 'SovereigntyPolicy'),
    tiers: await all(store, 'TrustTier'),
    home: null,
    currency: options.currency,
    bundles: referenced.bundles,
    apis: apis.current(servers, referenced.documents),
  }
  const keyFileOf: KeyFileOf = ({ namespace, secret }) => join(secretsDir, namespace, secret.name, secret.key)
  const previous = await readPrevious(join(outDir, 'policies.json'))
  const rendered = renderEverything(declared, { keyFileOf, previous })
  const credentials = renderCredentials(servers, referenced.secrets)
  await writeCredentials(credentialsDir, credentials.files)
  for (const file of rendered.files) await writeChanged(outDir, file, log)
  const sizes = rendered.files.map(async ({ name, packed }) => ({ name, bytes: (await packed()).bytes }))
  const outgrown = (await Promise.all(sizes))
    .filter(({ bytes }) => bytes > CONFIG_MAP_BYTES)
    .map(({ name, bytes }) => `${name} has ${bytes} bytes: a ConfigMap holds ${CONFIG_MAP_BYTES}`)
  const refused = [...rendered.refused, ...credentials.refused]
  for (const line of refused) if (!before.refused.includes(line)) log.error({ refused: line }, 'resource refused')
  for (const line of outgrown)
    if (!before.outgrown.includes(line)) log.warn({ outgrown: line }, 'a rendered file is too large for a ConfigMap')
  return { refused, outgrown, declared, referenced: textOf(referenced) }
}

function textOf({ secrets, documents }: Referenced): string {
  return JSON.stringify([[...secrets.texts], [...documents.texts]])
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

async function writeChanged(dir: string, { name, pretty }: RenderedFile, log: Log): Promise<void> {
  const path = join(dir, name)
  const text = pretty()
  if ((await readOrNull(path))?.toString('utf8') === text) return
  await writeWhole(path, text)
  log.info({ path }, 'rendered')
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
