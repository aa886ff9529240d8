import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { generateKeyFiles, type LocalSigner, openSigner } from '@plat/keys'
import type { PolicyFile, UpstreamsFile } from '@plat/resources/rendered'
import { signJws } from '@plat/tokens'
import { type Server, startServer } from './proc.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
export const BROKER_TOKEN = 'bench-broker-token'
export const NAME = { namespace: 'default', agent: 'assistant', session: 'bench' } as const

/** A signing key on disk with its signer. */
export interface Keys {
  readonly keyPath: string
  readonly pubPath: string
  readonly signer: LocalSigner
}

export async function makeKeys(dir: string): Promise<Keys> {
  const files = await generateKeyFiles(path.join(dir, 'keys'))
  const signer = await openSigner(files.keyPath)
  return { ...files, signer }
}

/** Builds the npm package, which is what users run; returns the folder of its programs. */
export function buildPackage(dir: string): string {
  const folder = path.join(dir, 'package')
  execFileSync(process.execPath, [path.join(ROOT, 'tools/package/run.ts'), folder])
  return path.join(folder, 'bin')
}

/** A session token of the bench's agent, as the broker mints them; each has its own `jti`. */
export function sessionToken(signer: LocalSigner, scope = 'tools:notes'): string {
  const now = Math.floor(Date.now() / 1000)
  const { namespace, agent, session } = NAME
  return signJws(
    signer,
    {},
    {
      iss: 'plat-identity',
      sub: `spiffe://plat.local/ns/${namespace}/agent/${agent}/session/${session}`,
      aud: 'plat-gateway',
      iat: now,
      nbf: now,
      exp: now + 3600,
      jti: randomUUID(),
      act: { sub: 'user:alice' },
      scope,
      plat_ns: namespace,
      plat_agent: agent,
      plat_session: session,
      plat_tier: 'tier-0',
    },
  )
}

type Rules = PolicyFile['policies'][number]['rules']

/** The five rules that "governed" means: four that do not match, one with a CEL condition, and the one that allows. */
const fiveRules: Rules = [
  { name: 'reading', action: 'allow', match: { servers: ['notes'], tools: ['list_notes', 'read_note'] } },
  { name: 'adding', action: 'allow', match: { servers: ['notes'], tools: ['add_*'] } },
  {
    name: 'keep',
    action: 'deny',
    match: { servers: ['notes'], tools: ['add_*', 'delete_note'] },
    when: "args.name.startsWith('keep-')",
  },
  { name: 'search', action: 'allow', match: { servers: ['search', 'web-*'] } },
  { name: 'night', action: 'deny', match: { servers: ['billing'], groups: ['contractors'] } },
]

/** The same rules, where a neighbouring tool needs an approval, and the one that is called may have a rate that is never used up. */
function rulesOf(watched: GatewayExtra['watched']): Rules {
  if (watched === undefined) return fiveRules
  return fiveRules.map((rule) => {
    if (rule.name === 'reading') return { ...rule, action: 'require_approval' }
    if (rule.name !== 'adding' || watched === 'asked') return rule
    return { ...rule, rateLimit: { count: 1_000_000_000, seconds: 3600, per: 'session' } }
  })
}

function policyFile(rules: Rules): PolicyFile {
  const policy = { name: 'default/assistant', namespace: 'default', agents: ['assistant'], cedar: '', rules }
  return {
    version: 1,
    generation: 1,
    revision: `sha256:${'0'.repeat(64)}`,
    policies: [{ ...policy, mode: 'enforce', defaultAction: 'deny' }],
  }
}

/** Sessions that are revoked beside those that call. */
const REVOKED = 1_000

const revocations = {
  version: 1,
  revocations: Array.from({ length: REVOKED }, (_, n) => ({
    id: `r${n}`,
    createdAt: '2026-01-01T00:00:00Z',
    target: { session: `default/assistant/gone-${n}` },
  })),
}

function upstreams(url: string): UpstreamsFile {
  const notes: UpstreamsFile['servers'][string] = {
    url,
    namespaces: [],
    implicit: false,
    trust: 'trusted',
    dataClass: 'internal',
    auth: { type: 'none' },
  }
  return {
    version: 1,
    servers: { 'default/notes': notes },
    bindings: { 'default/assistant/notes': 'default/notes' },
    agentWeb: {},
  }
}

/** Prices of every model and of the tool that is called, for gateways with a budget: it is never used up. */
const prices = {
  version: 1,
  currency: 'USD',
  id: 'bench',
  models: { 'openai/*': { input: '1', output: '4' } },
  tools: { 'default/notes/*': { perCall: '0.000001' } },
}

/** Options of a gateway in the bench, in addition to five rules and one upstream. */
export interface GatewayExtra {
  /** Model routes, under a budget. */
  readonly models?: Readonly<Record<string, object>>
  /** Revocations and a rule of approval that let the call through; `held`: a rate and a budget besides. */
  readonly watched?: 'asked' | 'held'
  /** `auditSegmentBytes`; absent: the default. */
  readonly segmentBytes?: number
  /** Folder of the programs; default: that of the repository. */
  readonly bin?: string
}

/** Writes what `plat-gateway` reads and starts it alone: `closed`, five rules, one upstream. */
export async function startGateway(
  dir: string,
  keys: Keys,
  upstreamUrl: string,
  { models = {}, watched, segmentBytes, bin = path.join(ROOT, 'services/gateway/bin') }: GatewayExtra = {},
): Promise<Server> {
  const state = path.join(dir, 'gateway')
  mkdirSync(state, { recursive: true })
  const write = (name: string, value: object) => {
    const file = path.join(state, name)
    writeFileSync(file, JSON.stringify(value))
    return file
  }
  const config = write('gateway.json', {
    listen: '127.0.0.1:0',
    logLevel: 'info',
    identity: { publicKeyFiles: [keys.pubPath], issuer: 'plat-identity' },
    policyFile: write('policies.json', policyFile(rulesOf(watched))),
    upstreamsFile: write('upstreams.json', upstreams(upstreamUrl)),
    auditPath: path.join(state, 'audit.jsonl'),
    auditFailurePolicy: 'closed',
    ...(segmentBytes !== undefined && { auditSegmentBytes: segmentBytes }),
    ...(watched !== undefined && { revocationsFile: write('revocations.json', revocations) }),
    ...((watched === 'held' || Object.keys(models).length > 0) && {
      models,
      pricingFile: write('prices.json', prices),
      sessionBudgetUSD: 1_000_000,
    }),
  })
  return startServer({ name: 'gateway', dir, args: [path.join(bin, 'plat-gateway.mjs'), '-config', config] })
}

/** Starts `plat-identity` alone with the key of the bench. */
export function startIdentity(dir: string, keys: Keys, more: readonly string[] = []): Promise<Server> {
  const bin = path.join(ROOT, 'services/identity/bin/plat-identity.mjs')
  const args = [bin, '-listen', '127.0.0.1:0', '-signing-key', keys.keyPath, ...more]
  return startServer({ name: 'identity', dir, args, env: { PLAT_BROKER_TOKEN: BROKER_TOKEN } })
}

/** Starts one of our own servers of `servers/`. */
export function startOwn(dir: string, file: string, ...args: string[]): Promise<Server> {
  return startServer({ name: file, dir, args: [path.join(ROOT, 'bench/servers', file), ...args] })
}

/** Runs `use` with servers that are all stopped afterwards, whatever happens. */
export async function withServers<T>(
  use: (keep: (server: Promise<Server>) => Promise<Server>) => Promise<T>,
): Promise<T> {
  const running: Server[] = []
  try {
    return await use(async (starting) => {
      const server = await starting
      running.push(server)
      return server
    })
  } finally {
    await Promise.all(running.map((server) => server.stop()))
  }
}
