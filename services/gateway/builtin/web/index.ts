import { readFile } from 'node:fs/promises'
import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Static } from 'typebox'
import {
  type BuiltinServer,
  type BuiltinTool,
  type Caller,
  type Denial,
  isDenial,
  type ToolLabels,
  type ToolResult,
} from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { webBlock } from './config.ts'
import { type AgentDomains, type GateConfig, Gates } from './domain-filter.ts'
import { Follower } from './read/follow.ts'
import { Robots } from './read/robots.ts'
import { backendOf } from './search/backends.ts'
import { createSearchTool } from './search-tool.ts'

export type { AgentDomains, Domains } from './domain-filter.ts'

export type WebConfig = Readonly<Static<typeof webBlock.schema>>

/** Result of a web tool: success, a failure described to the model, or a denial. */
type WebResult = 'ok' | 'error' | 'denied'
type CountCall = (tool: string, result: WebResult) => void

export interface WebParts {
  readonly config: WebConfig
  readonly agentDomains: AgentDomains
  /** For the search backend, configured by the operator. */
  readonly dialer: Dialer
  /** Creates the dialer of pages with exceptions to blocked ranges. Called once. */
  readonly dialPages: (allowedCIDRs: readonly string[]) => Dialer
  readonly clock: Clock
  readonly metrics: GatewayMetrics
}

export interface WebFeature {
  /** `plat-web`, or null if it is not enabled. */
  readonly server: BuiltinServer | null
  close(): void
}

const NAME = 'plat-web'
const NO_LABELS: ToolLabels = { taints: [], clearTaints: [], sinks: [] }

/** The built-in web tool (docs/spec/gateway.md, `web`). Rejects if `web.search.caFile` cannot be read. */
export async function createWeb(parts: WebParts): Promise<WebFeature> {
  const { config, agentDomains, metrics } = parts
  if (!config.enabled) return { server: null, close() {} }
  const gates = new Gates(config, agentDomains)
  const dialer = parts.dialPages(config.allowedCIDRs)
  const calls = metrics.counter('plat_gateway_web_calls_total')
  const count: CountCall = (tool, result) => calls.inc({ tool, result })
  const tools = (await toolsOf(parts, gates, dialer)).map((tool) => counting(tool, count))
  const labels: ToolLabels = { ...NO_LABELS, taints: config.taintLabels }
  return {
    close: () => dialer.close(),
    server: {
      name: NAME,
      title: 'Web',
      instructions: 'Reads web pages that this gateway allows for this agent.',
      trust: 'untrusted',
      dataClass: 'public',
      labels: (tool) => (tool === null ? NO_LABELS : labels),
      tools: (caller) => (gates.of(caller).isShut ? [] : tools),
    },
  }
}

/**
 * Returns why a caller's browser must not reach a host, or null. Uses the lists of the gateway and its namespaces for the web tool,
 * whether or not that is enabled, and the allowed domains of `Agent.spec.browser` (docs/spec/crds.md).
 */
export function createBrowserGate(
  config: GateConfig,
  agentDomains: AgentDomains,
): (caller: Caller, place: URL) => string | null {
  const agentAt = { allowedAt: 'Agent.spec.browser.allowedDomains', deniedAt: 'Agent.spec.web.deniedDomains' }
  const gates = new Gates(config, agentDomains, agentAt)
  return (caller, place) => gates.of(caller).fault(place)
}

async function toolsOf(
  { config, dialer: configured, clock }: WebParts,
  gates: Gates,
  dialer: Dialer,
): Promise<BuiltinTool[]> {
  const { maxBytes, contentTypes, respectRobots, userAgent, search } = config
  const timeoutMs = config.timeoutSeconds * 1000
  const follower = new Follower({ dialer, clock, maxRedirects: config.maxRedirects, userAgent })
  const robots = respectRobots ? new Robots(follower, clock, userAgent) : null
  // Loads the HTML parser only if needed.
  const { createFetchTool } = await import('./fetch-tool.ts')
  const fetch = createFetchTool({ gates, follower, robots, clock, maxBytes, timeoutMs, contentTypes })
  const backend = backendOf(search)
  if (backend === null) return [fetch]
  const caPEM = search.caFile === '' ? null : await readFile(search.caFile, 'utf8')
  return [fetch, createSearchTool({ gates, dialer: configured, config: search, backend, caPEM, userAgent, timeoutMs })]
}

function counting(tool: BuiltinTool, count: CountCall): BuiltinTool {
  const ended = (result: ToolResult | Denial | null): void => {
    if (result === null) return
    count(tool.name, isDenial(result) ? 'denied' : result.isError ? 'error' : 'ok')
  }
  return {
    ...tool,
    judge(args, caller) {
      const denial = tool.judge(args, caller)
      ended(denial)
      return denial
    },
    async run(args, call) {
      const result = await tool.run(args, call)
      ended(result)
      return result
    },
  }
}
