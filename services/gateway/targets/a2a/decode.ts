import { type AgentsFile, agentsFileSchema, type Decoded, decodeRendered } from '@plat/resources/rendered'

/** Two path segments. */
const AGENT_KEY = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/

/** Decodes a routes file strictly. */
export function decodeAgents(bytes: Uint8Array): Decoded<AgentsFile> {
  const decoded = decodeRendered(agentsFileSchema, bytes, () => [])
  if (!decoded.ok) return decoded
  const problems = Object.entries(decoded.file.agents).flatMap(([key, { endpoint, skills }]) => [
    ...(AGENT_KEY.test(key) ? [] : [`agents[${key}]: must read <namespace>/<agent>`]),
    ...endpointFaults(endpoint).map((fault) => `agents[${key}].endpoint: ${fault}`),
    ...(new Set(skills.map(({ id }) => id)).size === skills.length ? [] : [`agents[${key}].skills: duplicate id`]),
  ])
  return problems.length > 0 ? { ok: false, problems } : decoded
}

/** The gateway authenticates calls of agents: URLs contain no password. */
function endpointFaults(endpoint: string): readonly string[] {
  const url = URL.parse(endpoint)
  if (url === null) return ['not a URL']
  return url.username === '' && url.password === '' ? [] : ['must not hold credentials']
}
