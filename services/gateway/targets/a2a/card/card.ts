import type { ExposedAgent } from '../registry.ts'
import type { RemoteCard } from './remote.ts'

/** A2A protocol version that the gateway speaks. */
export const PROTOCOL_VERSION = '1.0'

/** Below the address of an agent (A2A 1.0, section 8.2). */
export const CARD_PATH = '/.well-known/agent-card.json'

/** What every agent takes and gives where it does not say. */
const TEXT = ['text/plain']

export interface CardContext {
  /** Where agents are called, without a trailing slash: `https://gateway.example`. */
  readonly baseURL: string
  /** What the agent says of itself; null: nothing that could be read. */
  readonly remote: RemoteCard | null
  /** Whether any webhook is allowed. */
  readonly pushes: boolean
}

/**
 * The Agent Card of an exposed agent (A2A 1.0, section 4.4): it leads to the gateway, and tells what the Agent resource tells. No member
 * is empty, so that its canonical form for signing is the same however a reader treats defaults. It names no security scheme: the SDK of
 * the protocol loses them before it checks a signature (1.3.0), and the challenge of a refused call says how to authenticate.
 */
export function cardOf(agent: ExposedAgent, { baseURL, remote, pushes }: CardContext): object {
  const { namespace, name, server, description, version, streaming } = agent
  const extensions = remote?.extensions ?? []
  return {
    name,
    description: description || `The agent ${namespace}/${name}`,
    supportedInterfaces: [
      { url: `${baseURL}/${server}`, protocolBinding: 'JSONRPC', protocolVersion: PROTOCOL_VERSION },
    ],
    version,
    capabilities: {
      streaming,
      pushNotifications: pushes && remote?.pushNotifications === true,
      ...(extensions.length > 0 && { extensions }),
    },
    defaultInputModes: remote?.defaultInputModes ?? TEXT,
    defaultOutputModes: remote?.defaultOutputModes ?? TEXT,
    skills: skillsOf(agent),
  }
}

/** A card must list a skill, and each must have a description and a tag: what the resource leaves out is filled in. */
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
