import type { ExposedAgent } from '../registry.ts'

/** Members of an agent's own card that its resource does not have. */
export interface RemoteCard {
  readonly pushNotifications: boolean
  readonly extensions: readonly object[]
  readonly defaultInputModes: readonly string[]
  readonly defaultOutputModes: readonly string[]
}

/** Versions of A2A that callers may speak, and the first version of a card. */
export const PROTOCOL_VERSION = '1.0'
export const LEGACY_VERSION = '0.3'

/** Path below the URL of an agent (A2A 1.0, section 8.2). */
export const CARD_PATH = '/.well-known/agent-card.json'

/** Default input and output modes. */
const TEXT = ['text/plain']

export interface CardContext {
  /** Base URL of agents, without a trailing slash: `https://gateway.example`. */
  readonly baseURL: string
  /** The agent's own card, or null if it is not readable. */
  readonly remote: RemoteCard | null
  /** Whether any webhook is allowed. */
  readonly pushes: boolean
  /** For clients of 0.3, and for those that name no version. */
  readonly isLegacy: boolean
}

/**
 * The Agent Card of an exposed agent (A2A 1.0, section 4.4): it names the gateway as endpoint and has the content of the Agent resource. No
 * member is empty, so that its canonical form is the same however a reader treats defaults. The members of 0.3 are only in cards for clients of
 * that version: readers of 1.0 drop them before they verify a signature. It has no security scheme: the SDK of
 * the protocol drops them before it verifies a signature (1.3.0), and the challenge of a refused call describes the authentication.
 */
export function cardOf(agent: ExposedAgent, { baseURL, remote, pushes, isLegacy }: CardContext): object {
  const { namespace, name, server, description, version, streaming, protocolVersion } = agent
  const extensions = remote?.extensions ?? []
  const url = `${baseURL}/${server}`
  const supported = (named: string) => ({ url, protocolBinding: 'JSONRPC', protocolVersion: named })
  // The agent notifies webhooks in its own version.
  const isOwn = protocolVersion === (isLegacy ? LEGACY_VERSION : PROTOCOL_VERSION)
  return {
    name,
    description: description || `The agent ${namespace}/${name}`,
    ...(isLegacy && { protocolVersion: `${LEGACY_VERSION}.0`, url, preferredTransport: 'JSONRPC' }),
    supportedInterfaces: [supported(PROTOCOL_VERSION), supported(LEGACY_VERSION)],
    version,
    capabilities: {
      streaming,
      pushNotifications: pushes && isOwn && remote?.pushNotifications === true,
      ...(extensions.length > 0 && { extensions }),
    },
    defaultInputModes: remote?.defaultInputModes ?? TEXT,
    defaultOutputModes: remote?.defaultOutputModes ?? TEXT,
    skills: skillsOf(agent),
  }
}

/** A card needs a skill, and each a description and a tag: fills in what the resource omits. */
function skillsOf({ name, description, skills }: ExposedAgent): readonly object[] {
  if (skills.length === 0)
    return [{ id: name, name, description: description || `Whatever ${name} does`, tags: [name] }]
  return skills.map((skill) => {
    const examples = (skill.examples ?? []).filter((text) => text !== '')
    const tags = (skill.tags ?? []).filter((text) => text !== '')
    return {
      id: skill.id,
      name: skill.name,
      description: skill.description || skill.name,
      tags: tags.length > 0 ? tags : [name],
      ...(examples.length > 0 && { examples }),
    }
  })
}
