import type { Manifest } from '@plat/resources'
import type { PolicyFile } from '@plat/resources/rendered'
import { renderAgents } from './agents.ts'
import { renderBudgets } from './budgets.ts'
import type { Declared } from './declared.ts'
import { renderRevocations } from './limits/revocations.ts'
import { renderMemory } from './memory.ts'
import { type KeyFileOf, renderModels } from './models.ts'
import { renderPolicies } from './policies.ts'
import { renderSovereignty } from './sovereignty.ts'
import { renderUpstreams } from './upstreams.ts'

/** Largest rendered file that a cluster can hold: a ConfigMap has at most so many bytes (document 3, "Limits"). */
export const CONFIG_MAP_BYTES = 1024 * 1024

export interface RenderedFile {
  /** `policies.json` */
  readonly name: string
  readonly text: string
  /** Bytes of the text. */
  readonly bytes: number
}

export interface Everything {
  /**
   * In the order in which they are put in force: a server is not found before the rules for it are there. The credentials come before
   * all of them.
   */
  readonly files: readonly RenderedFile[]
  /** One line for everything that is declared and not in force. */
  readonly refused: readonly string[]
}

/** Every file that the gateway reads, from everything that is declared. `previous`: the policies before, for their generation. */
export function renderEverything(declared: Declared, keyFileOf: KeyFileOf, previous: PolicyFile | null): Everything {
  const revocations =
    declared.home === null ? null : renderRevocations(declared.revocations, declared.home, declared.ended)
  const sovereignty = renderSovereignty(declared)
  const policies = renderPolicies(declared, previous)
  const budgets = renderBudgets(declared)
  const upstreams = renderUpstreams(declared)
  const files = {
    ...(revocations !== null && { 'revocations.json': revocations.file }),
    'sovereignty.json': sovereignty.file,
    'policies.json': policies.file,
    'budgets.json': budgets.file,
    'upstreams.json': upstreams.file,
    'models.json': renderModels(declared, keyFileOf).file,
    'agents.json': renderAgents(declared).file,
    'memory.json': renderMemory(declared).file,
  }
  return {
    files: Object.entries(files).map(([name, file]) => fileOf(name, file)),
    refused: [revocations, policies, upstreams, budgets, sovereignty].flatMap((rendered) => rendered?.refused ?? []),
  }
}

function fileOf(name: string, file: object): RenderedFile {
  const text = `${JSON.stringify(file, null, 2)}\n`
  return { name, text, bytes: Buffer.byteLength(text) }
}

/** Does some policy have a Cedar text? Its engine is loaded only then. */
export function hasCedar(policies: readonly Manifest<'ToolPolicy'>[]): boolean {
  return policies.some(({ spec }) => (spec.cedar ?? '') !== '')
}
