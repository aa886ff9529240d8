import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '@plat/core'
import { openPolicyTrial, type PolicyTrial, type TrialCall, type Verdict } from '@plat/gateway/policy-trial'
import { decodeModels } from '@plat/gateway/rendered/models'
import { readAgent } from '../shared/agent.ts'
import { homeOf, type PlatFolder } from '../shared/home.ts'
import { CommandError, type Output, plain } from '../shared/output.ts'
import { locateProblems } from '../validate/locate.ts'
import { type RenderedFolder, withRendered } from '../validate/rendered.ts'

/** The policies of a directory, and where its rules are. */
export interface FolderTrial {
  readonly home: PlatFolder
  readonly trial: PolicyTrial
  /** An external engine is not called; this is its address, or empty. */
  readonly externalEngine: string
  /** `toolpolicies/default/p.yaml:12` of the rule that decided; null: no rule of a file. */
  locate(verdict: Verdict): Promise<string | null>
}

/**
 * Opens the policies of a directory with the gateway's own code while `use` runs. Resources that are refused deny, as in the gateway.
 * @throws CommandError if gateway.json or the policies have errors
 */
export async function withTrial<T>(dir: string, use: (folder: FolderTrial) => Promise<T>): Promise<T> {
  const home = homeWithResources(dir)
  return withRendered(home, async (folder) => {
    const { config, errors } = folder.gateway
    if (config === null) throw new CommandError((await locateProblems(home.dir, errors)).join('\n'))
    const limits = {
      budgets: await readFile(join(folder.rendered, 'budgets.json')),
      prices: config.pricingFile === '' ? null : await readFile(config.pricingFile),
      sessionBudgetUSD: config.sessionBudgetUSD,
      budgetTimezone: config.budgetTimezone,
    }
    const trial = await openPolicyTrial({
      ...limits,
      agents: await readFile(join(folder.rendered, 'agents.json')),
      maxDelegationDepth: config.a2a.maxDelegationDepth,
      providerOf: await providersIn(folder),
      policies: await readFile(join(folder.rendered, 'policies.json')),
      upstreams: await readFile(join(folder.rendered, 'upstreams.json')),
      statics: config.upstreams,
      judgesModels: config.modelPolicy === 'policy',
    })
    if ('problems' in trial) throw new CommandError(trial.problems.join('\n'))
    const { url: externalEngine } = config.policy.rego
    return use({ home, trial, externalEngine, locate: (verdict) => locateRule(folder, verdict) })
  })
}

/** @throws CommandError if the directory has no resources/ folder */
function homeWithResources(dir: string): PlatFolder {
  const home = homeOf(dir)
  if (existsSync(join(home.dir, 'resources'))) return home
  throw new CommandError(
    `${home.dir} has no resources/ folder; name a directory that has one, or write one with plat init`,
  )
}

/** Returns the provider of a model route of gateway.json or of an Agent; null: there is no such route. */
async function providersIn({ rendered, gateway }: RenderedFolder): Promise<(route: string) => string | null> {
  const decoded = decodeModels(await readFile(join(rendered, 'models.json')))
  if (!decoded.ok) throw new CommandError(decoded.problems.join('\n'))
  const routes = new Map(Object.entries({ ...gateway.config?.models, ...decoded.file.models }))
  return (route) => {
    const found = routes.get(route)
    return found === undefined ? null : (found.provider ?? 'openai')
  }
}

/**
 * Returns file and line of a rule of a folder with resources; null when the folder has no such policy.
 * @throws CommandError if the directory has no resources/ folder
 */
export async function placeOfRule(dir: string, rule: Pick<Verdict, 'policy' | 'rule'>): Promise<string | null> {
  return await withRendered(homeWithResources(dir), (folder) => locateRule(folder, rule))
}

async function locateRule(
  { store, render }: RenderedFolder,
  { policy, rule }: Pick<Verdict, 'policy' | 'rule'>,
): Promise<string | null> {
  const [namespace = '', name = ''] = policy?.split('/') ?? []
  const declared = render
    .declared()
    .policies.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name)
  if (declared === undefined) return null
  const index = (declared.spec.rules ?? []).findIndex((one) => one.name === rule)
  const field = index === -1 ? 'spec' : `spec.rules[${index}]`
  const [place] = await store.locate('ToolPolicy', { namespace, name }, [field])
  return place ?? null
}

/** A call as a person writes it. */
export interface WrittenCall {
  /** `assistant` or `default/assistant`. */
  readonly agent: string
  /** `<server>/<tool>`, `llm/<route>/<model>`, or `a2a/<namespace>/<agent>/<skill>`. */
  readonly call: string
  /** JSON text; null: not known. */
  readonly args: string | null
  readonly user?: string | undefined
  readonly groups?: readonly string[] | undefined
  readonly taints?: readonly string[] | undefined
  /** RFC 3339. */
  readonly time?: string | undefined
  /** Calls that rate limits have counted, by rule. */
  readonly used?: Readonly<Record<string, number>> | undefined
  /** Money or tokens that are spent, by the ID of the budget. */
  readonly spent?: Readonly<Record<string, string | number>> | undefined
  /** Tokens of a call of a model. */
  readonly tokens?: { readonly input: number; readonly output: number } | undefined
}

/**
 * Reads a call, with tier and scopes of its agent.
 * @throws CommandError with exit code 2 if it is not written as above, or names no agent
 */
export async function readCall(dir: string, written: WrittenCall): Promise<TrialCall> {
  const agent = await readAgent(dir, written.agent)
  const { namespace, name, tier, scopes } = agent
  const now = written.time === undefined ? systemClock.now() : Date.parse(written.time)
  if (Number.isNaN(now))
    throw new CommandError(`${plain(written.time ?? '')} is not a time such as 2026-11-20T12:00:00Z`, 2)
  return {
    ...{ namespace, agent: name, tier, scopes, ...targetOf(written.call), args: argumentsOf(written.args), now },
    used: { rates: written.used ?? {}, budgets: written.spent ?? {}, tokens: written.tokens ?? null },
    ...{ user: written.user ?? null, groups: written.groups ?? [], taints: written.taints ?? [] },
  }
}

/** Models may have slashes in their names, MCP servers not; an agent has two parts after `a2a`. */
function targetOf(call: string): { readonly server: string; readonly tool: string } {
  const parts = call.split('/')
  const server = parts.splice(0, LENGTHS[parts[0] ?? ''] ?? 1).join('/')
  const tool = parts.join('/')
  if (server !== '' && tool !== '' && !Object.hasOwn(LENGTHS, server)) return { server, tool }
  throw new CommandError(
    `${JSON.stringify(plain(call))} is not a call: write <server>/<tool>, llm/<route>/<model>, or a2a/<namespace>/<agent>/<skill>`,
    2,
  )
}

/** Parts of the name of a target other than MCP servers. */
const LENGTHS: Readonly<Record<string, number>> = { llm: 2, a2a: 3 }

function argumentsOf(text: string | null): string | null {
  if (text === null) return null
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = null
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return text
  throw new CommandError(`the arguments are not a JSON object; write them as '{"name": "value"}'`, 2)
}

/** Says that the verdict is incomplete where an external engine would be called as well. */
export function warnOfEngine({ externalEngine }: FolderTrial, output: Output): void {
  if (externalEngine !== '') output.err('warning: policy.rego is configured: the external engine is not called here')
}
