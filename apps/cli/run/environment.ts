import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentGrant } from '../shared/agent.ts'

/** Never passed on to the program: the tokens of the person who runs it. */
const WITHHELD = ['PLAT_BROKER_TOKEN', 'PLAT_BROKER_TOKEN_FILE', 'PLAT_ADMIN_TOKEN', 'PLAT_ADMIN_TOKEN_FILE']

/**
 * Variables that model SDKs read their key from. All get the placeholder: the SDKs do not start without a value, and with the person's
 * own key the program could go past the gateway.
 */
const KEY_VARIABLES = [
  'OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'AZURE_OPENAI_API_KEY',
  'GEMINI_API_KEY',
  'GOOGLE_API_KEY',
  'MISTRAL_API_KEY',
  'COHERE_API_KEY',
  'CO_API_KEY',
  'GROQ_API_KEY',
] as const

export interface RunPlaces {
  /** The forwarder's address with its secret. */
  readonly url: string
  readonly session: string
  /** Opens nothing but the forwarder: the placeholder for keys. */
  readonly secret: string
  /** Holds `mcp.json` and the temporary files of the program. */
  readonly folder: string
}

/** Returns the environment of the program: the person's own, without keys and tokens, with the addresses of the forwarder. */
export function programEnvironment(
  inherited: NodeJS.ProcessEnv,
  agent: Pick<AgentGrant, 'namespace' | 'name' | 'scopes'>,
  { url, session, secret, folder }: RunPlaces,
): NodeJS.ProcessEnv {
  const passed = Object.fromEntries(Object.entries(inherited).filter(([name]) => !WITHHELD.includes(name)))
  const model = modelAddress(url, agent)
  return {
    ...passed,
    ...(inherited.PATH !== undefined && { PATH: withoutPinnedNode(inherited.PATH) }),
    ...Object.fromEntries(KEY_VARIABLES.map((name) => [name, secret])),
    PLAT_GATEWAY_URL: url,
    PLAT_SESSION: session,
    PLAT_MCP_URL: `${url}/mcp`,
    PLAT_MCP_CONFIG: join(folder, 'mcp.json'),
    OPENAI_BASE_URL: model.openai,
    OPENAI_API_BASE: model.openai,
    ANTHROPIC_BASE_URL: model.anthropic,
    GOOGLE_GEMINI_BASE_URL: model.google,
    TMPDIR: join(folder, 'tmp'),
  }
}

/**
 * Returns the base URLs of models. The private route of an agent accepts any model name, since it sets the model itself, so programs that name
 * another one work unchanged. Without it the model name chooses among all routes of the agent.
 */
function modelAddress(url: string, { namespace, name, scopes }: Pick<AgentGrant, 'namespace' | 'name' | 'scopes'>) {
  const route = `${namespace}.${name}`
  return scopes.includes(`models:${route}`)
    ? { openai: `${url}/llm/${route}/v1`, anthropic: `${url}/llm/${route}`, google: `${url}/llm/${route}` }
    : { openai: `${url}/llm/v1`, anthropic: `${url}/llm/anthropic`, google: `${url}/llm` }
}

/**
 * npm puts its `.bin` folders first on the PATH, and one of them holds the Node that plat brings along. They go to the end: the program
 * runs on the Node that it was written for, and still finds the other commands of those folders.
 */
export function withoutPinnedNode(path: string): string {
  const folders = path.split(':')
  const pinned = folders.filter((folder) => holdsThisNode(folder))
  return [...folders.filter((folder) => !pinned.includes(folder)), ...pinned].join(':')
}

function holdsThisNode(folder: string): boolean {
  const node = join(folder, 'node')
  return (
    folder.endsWith('node_modules/.bin') && existsSync(node) && realpathSync(node) === realpathSync(process.execPath)
  )
}
