import { isObject, type JsonObject, member } from '@plat/core'
import { definedTools, switchedOnTools } from '../../../call/index.ts'
import { isSet } from './checks.ts'

/** Members by which a caller selects other prices, with the values that mean the plain ones. */
const MULTIPLIED: Readonly<Record<string, ReadonlySet<unknown>>> = {
  service_tier: new Set(['auto', 'default', 'standard', 'standard_only']),
  speed: new Set(['standard']),
  inference_geo: new Set(['global', 'not_available']),
}

/** Cache writes that live for an hour, as `options` of a price name them. */
export const LONG_CACHE = 'cache_control.ttl=1h'

/** Longest value of an option, in characters; a longer one is cut, and has no price. */
const MAX_VALUE_LENGTH = 64

/** Returns the options of a request that change its price, by their names in price tables: `service_tier=priority`, `speed=fast`. */
export function optionsOf(value: JsonObject): readonly string[] {
  const options = Object.entries(MULTIPLIED).flatMap(([name, plain]) => {
    const selected = value[name]
    if (!isSet(selected) || plain.has(selected)) return []
    return [`${name}=${typeof selected === 'string' ? selected.slice(0, MAX_VALUE_LENGTH) : typeof selected}`]
  })
  return hasLongCache(value) ? [...options, LONG_CACHE] : options
}

/** Anthropic's blocks, tools and requests say how long their cache lives. The plain price is that of five minutes. */
function hasLongCache({ cache_control: control, system, tools, messages }: JsonObject): boolean {
  const inBlocks = (blocks: unknown): boolean =>
    Array.isArray(blocks) &&
    blocks.some((block) => isLong(member(block, 'cache_control')) || inBlocks(member(block, 'content')))
  return isLong(control) || inBlocks(system) || inBlocks(tools) || inBlocks(messages)
}

function isLong(control: unknown): boolean {
  const ttl = member(control, 'ttl')
  return isSet(ttl) && ttl !== '5m'
}

/** Tools that the agent runs itself. */
const OWN_TOOLS: ReadonlySet<unknown> = new Set(['function', 'custom'])
/** Anthropic's definitions of tools that the agent runs. */
const OWN_DEFINITIONS = /^(?:bash|text_editor|memory|computer)_\d{8}$/

/**
 * Returns by what a request lets the provider do what no bytes of it bound: run tools (each search is charged, and what it finds is input),
 * or generate sound and images. Null: by nothing.
 */
export function openEndOf(body: JsonObject): string | null {
  const { modalities, mcp_servers: servers, container } = body
  if (isSet(servers)) return 'mcp_servers'
  if (isSet(container)) return 'container'
  const [switched] = switchedOnTools(body)
  if (switched !== undefined) return switched
  if (Array.isArray(modalities) && modalities.some((one) => one !== 'text')) return 'modalities'
  const hosted = definedTools(body).findIndex((tool) => !isOwnTool(tool))
  return hosted === -1 ? null : toolName(definedTools(body)[hosted])
}

/** Longest name of a tool in a refusal, in characters. */
const MAX_NAME_LENGTH = 64

/** Returns the type of a tool; one of Google's API is named by its first member that is not a declaration. */
function toolName(tool: unknown): string {
  const type = member(tool, 'type')
  const named = isObject(tool) ? Object.keys(tool).find((name) => name !== 'functionDeclarations') : undefined
  return typeof type === 'string' ? type.slice(0, MAX_NAME_LENGTH) : (named?.slice(0, MAX_NAME_LENGTH) ?? 'tools')
}

/** Google's tools are objects with one member for each kind. */
function hasDeclarations(tool: JsonObject): boolean {
  return Object.keys(tool).every((name) => name === 'functionDeclarations')
}

/** A tool without a type, or with one that is empty, is one of Anthropic's or Google's format. */
function isOwnTool(tool: unknown): boolean {
  const type = member(tool, 'type')
  if (!isSet(type)) return isObject(tool) && (isSet(tool.input_schema) || hasDeclarations(tool))
  return OWN_TOOLS.has(type) || (typeof type === 'string' && OWN_DEFINITIONS.test(type))
}
