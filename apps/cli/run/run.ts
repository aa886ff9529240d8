import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { base32, reasonOf, rfc3339, systemClock, systemIds } from '@plat/core'
import { askToRevoke, RUN_ENDED } from '../revoke/revoke.ts'
import { type AgentGrant, fetchAgent, readAgent } from '../shared/agent.ts'
import { mint } from '../shared/broker.ts'
import { findGateway } from '../shared/gateway.ts'
import { type GatewayEnv, type PlatFolder, writePrivate } from '../shared/home.ts'
import { CommandError, type Output } from '../shared/output.ts'
import { programEnvironment } from './environment.ts'
import { startForwarder } from './forwarder.ts'
import { chooseIsolation } from './isolation.ts'
import type { IsolationMode } from './isolation-modes.ts'
import { runProgram } from './program.ts'
import { openSession } from './session.ts'

export interface RunOptions {
  readonly dir?: string | undefined
  /** `assistant` or `<namespace>/assistant`. */
  readonly agent: string
  readonly command: readonly string[]
  /** Whether the program is kept from reading `.plat`; `auto`: if the machine can. */
  readonly isolate: IsolationMode
}

const SESSION_RANDOM_BYTES = 8
const SECRET_BYTES = 32

/**
 * Runs any local program as a governed agent: its calls go through a loopback forwarder that adds the session token.
 * Returns the program's exit code.
 */
export async function run(options: RunOptions, output: Output): Promise<number> {
  if (options.command.length === 0) throw new CommandError('say what to run: plat run <agent> -- <command>', 2)
  const { home, env } = await findGateway(options.dir)
  const agent = home === null ? await fetchAgent(env, options.agent) : await readAgent(home.dir, options.agent)
  if (env.PLAT_GATEWAY_URL === '') throw new CommandError('the gateway is not known; set PLAT_GATEWAY_URL')
  const ids = systemIds(systemClock)
  const session = `run-${base32(ids.random(SESSION_RANDOM_BYTES)).slice(0, 13)}`
  const folder = await folderOf(home, session)
  const live = await openSession({
    clock: systemClock,
    mint: () => mint(env.PLAT_IDENTITY_URL, env.PLAT_BROKER_TOKEN, mintRequest(agent, session)),
    failed: (error) => output.err(`plat: the session token could not be renewed: ${String(error)}`),
  })
  const secret = base32(ids.random(SECRET_BYTES))
  const forwarder = await startForwarder({ gatewayURL: env.PLAT_GATEWAY_URL, secret, token: live.token })
  try {
    await mkdir(join(folder, 'tmp'), { recursive: true, mode: 0o700 })
    await writePrivate(join(folder, 'mcp.json'), mcpConfig(agent, forwarder.url))
    const isolation = chooseIsolation(options.isolate, home, folder)
    output.err(isolation.notice)
    const places = { url: forwarder.url, session, secret, folder }
    return await runProgram(options.command, programEnvironment(process.env, agent, places), isolation)
  } finally {
    await revokeSession(env, { agent, session, expiresAt: live.end() }, output)
    await forwarder.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** A folder that only this run uses: of the `.plat` of its `plat up`, else a temporary one. Closed to other users. */
async function folderOf(home: PlatFolder | null, session: string): Promise<string> {
  if (home === null) return await mkdtemp(join(tmpdir(), `plat-${session}-`))
  return join(home.runs, session)
}

/** Gateways accept a token a little beyond its end, since clocks differ; the revocation lasts longer than that. In milliseconds. */
const BEYOND_EXPIRY_MS = 5 * 60_000

/** Revokes the session, so that neither background processes nor a copied token can use it. Reports a failure. */
async function revokeSession(
  env: GatewayEnv,
  of: { readonly agent: AgentGrant; readonly session: string; readonly expiresAt: number },
  output: Output,
): Promise<void> {
  const target = { session: `${of.agent.namespace}/${of.agent.name}/${of.session}` }
  const expiresAt = rfc3339(of.expiresAt + BEYOND_EXPIRY_MS)
  await askToRevoke(env, { target, reason: RUN_ENDED, expiresAt }).catch((error: unknown) =>
    output.err(`plat: the session could not be revoked: ${reasonOf(error)}`),
  )
}

function mintRequest(agent: AgentGrant, session: string) {
  const { namespace, name, scopes, tier } = agent
  return { namespace, agent: name, session, user: userInfo().username, scopes, tier, ttlSeconds: agent.maxTTLSeconds }
}

/** The `mcp.json` that most MCP hosts read: one HTTP server for each tool of the agent. */
function mcpConfig(agent: AgentGrant, url: string): string {
  const servers = agent.tools.map((tool) => [tool, { type: 'http', url: `${url}/mcp/${tool}` }])
  return `${JSON.stringify({ mcpServers: Object.fromEntries(servers) }, null, 2)}\n`
}
