import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'

const NAME = 'openai-assistant'

/** An agent like `assistant`, with a model of a real account. The gateway alone has the key. */
const AGENT = `apiVersion: plat.dev/v1alpha1
kind: Agent
metadata:
  name: ${NAME}
  namespace: default
spec:
  image: example.com/assistant:1.0
  tier: tier-0
  policyRef: assistant
  tools:
    - name: notes
  model:
    provider: openai
    name: gpt-5-mini
    endpoint: https://api.openai.com/v1
    apiKeySecretRef: { name: openai, key: api-key }
`

/** How long the gateway may take to serve the new route, and how often it is looked for, in milliseconds. */
const READY_MS = 10_000
const LOOK_EVERY_MS = 200
/** The gateway reads rendered files again within this time, in milliseconds. */
const RELOAD_MS = 2_500

/** Adds the agent and the key in OPENAI_API_KEY while `use` runs. Returns the result of `use`. */
export async function withOpenAI(dir: string, use: (agent: string) => Promise<number>): Promise<number> {
  const key = process.env.OPENAI_API_KEY
  if (!key) {
    console.error('set OPENAI_API_KEY to the key of your account; it is given to the gateway, never to the agent')
    return 2
  }
  const secret = path.join(dir, '.plat/secrets/default/openai/api-key')
  const resource = path.join(dir, 'resources/agents/default', `${NAME}.yaml`)
  try {
    await mkdir(path.dirname(secret), { recursive: true, mode: 0o700 })
    await writeFile(secret, key, { mode: 0o600 })
    await writeFile(resource, AGENT)
    await served(path.join(dir, '.plat/rendered/models.json'))
    return await use(NAME)
  } finally {
    await rm(resource, { force: true })
    await rm(secret, { force: true })
  }
}

async function served(rendered: string): Promise<void> {
  for (let waited = 0; waited < READY_MS; waited += LOOK_EVERY_MS) {
    const text = await readFile(rendered, 'utf8').catch(() => '')
    if (text.includes(`default.${NAME}`)) break
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
  await new Promise((resolve) => setTimeout(resolve, RELOAD_MS))
}
