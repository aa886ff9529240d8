import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { programEnvironment } from './environment.ts'

const agent = { namespace: 'default', name: 'assistant', scopes: ['models:default.assistant'] }
const places = {
  url: 'http://127.0.0.1:1/s3cret',
  session: 'run-a',
  secret: 's3cret',
  folder: '/srv/.plat/run/run-a',
}

test('the keys of model SDKs are a placeholder, and the tokens of plat are not passed on', () => {
  const own = {
    OPENAI_API_KEY: 'own',
    ANTHROPIC_API_KEY: 'own',
    GEMINI_API_KEY: 'own',
    PLAT_ADMIN_TOKEN: 'admin',
    PLAT_BROKER_TOKEN: 'broker',
    HOME: '/srv',
  }
  const env = programEnvironment(own, agent, places)
  for (const name of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'GEMINI_API_KEY', 'GROQ_API_KEY'])
    assert.equal(env[name], 's3cret', name)
  assert.equal(env.HOME, '/srv')
  assert.ok(!Object.values(env).some((value) => value === 'own' || value === 'admin' || value === 'broker'))
  assert.equal(env.ANTHROPIC_BASE_URL, 'http://127.0.0.1:1/s3cret/llm/default.assistant')
  assert.equal(env.OPENAI_BASE_URL, `${env.ANTHROPIC_BASE_URL}/v1`)
  assert.equal(env.PLAT_MCP_URL, 'http://127.0.0.1:1/s3cret/mcp')
})

test('the folder of npm that holds the Node of plat comes last on the PATH of the program', () => {
  const folder = join(tempFolder(), 'node_modules/.bin')
  mkdirSync(folder, { recursive: true })
  symlinkSync(process.execPath, join(folder, 'node'))
  const env = programEnvironment({ PATH: `${folder}:/usr/local/bin:/usr/bin` }, agent, places)
  assert.equal(env.PATH, `/usr/local/bin:/usr/bin:${folder}`)
})

test('an agent with a model gets its private route, and any other the address of all its routes', () => {
  const of = (scopes: readonly string[]) => {
    const { OPENAI_BASE_URL, OPENAI_API_BASE, ANTHROPIC_BASE_URL } = programEnvironment(
      {},
      { ...agent, scopes },
      places,
    )
    assert.equal(OPENAI_API_BASE, OPENAI_BASE_URL)
    return [OPENAI_BASE_URL, ANTHROPIC_BASE_URL]
  }
  const { url } = places
  const own = [`${url}/llm/default.assistant/v1`, `${url}/llm/default.assistant`]
  assert.deepEqual(of(['models:default.assistant', 'models:small']), own)
  assert.deepEqual(of(['models:small']), [`${url}/llm/v1`, `${url}/llm/anthropic`])
})
