import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { closed, freePort, listening, tempFolder } from '@plat/testkit/local'
import { startAnthropicServer } from '@plat/testkit/model/anthropic'
import { startModelServer } from '@plat/testkit/model-server'
import { printed } from '../testing/commands.ts'
import { tokenMint } from '../token/mint.ts'
import { startUp } from '../up/up.ts'
import { importFile } from './import.ts'

/** A deployment of Azure OpenAI; its calls are path and key. */
async function startAzure() {
  const calls: string[] = []
  const choice = { index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const body = { id: '1', object: 'chat.completion', created: 1, model: 'ours', choices: [choice], usage }
  const server = createServer((request, response) => {
    calls.push(`${request.url} ${request.headers['api-key']}`)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const port = await listening(server)
  return { url: `http://127.0.0.1:${port}`, calls, close: () => closed(server) }
}

test('a LiteLLM configuration with five models of four providers runs after the import', async (t) => {
  const openai = await startModelServer({ apiKey: 'sk-openai' })
  const groq = await startModelServer({ apiKey: 'sk-groq' })
  const azure = await startAzure()
  const anthropic = await startAnthropicServer('sk-anthropic')
  t.after(() => Promise.all([openai, groq, azure, anthropic].map((server) => server.close())))
  const dir = tempFolder()
  const file = join(dir, 'config.yaml')
  const model = (name: string, params: object) => ({ model_name: name, litellm_params: params })
  const nothing = `http://127.0.0.1:${await freePort()}/v1`
  const config = {
    model_list: [
      model('gpt-4o', { model: 'openai/gpt-4o', api_base: nothing, api_key: 'os.environ/OPENAI_KEY' }),
      model('gpt-4o-mini', { model: 'openai/gpt-4o-mini', api_base: openai.url, api_key: 'os.environ/OPENAI_KEY' }),
      model('claude', { model: 'anthropic/claude-sonnet-4-5', api_base: anthropic.url, api_key: 'sk-anthropic' }),
      model('llama', { model: 'groq/llama-3.3-70b', api_base: groq.url, api_key: 'os.environ/GROQ_KEY' }),
      model('ours', { model: 'azure/ours', api_base: azure.url, api_key: 'sk-azure', api_version: '2024-10-21' }),
    ],
    litellm_settings: { fallbacks: [{ 'gpt-4o': ['gpt-4o-mini'] }] },
  }
  await writeFile(file, JSON.stringify(config))
  const env = { OPENAI_KEY: 'sk-openai', GROQ_KEY: 'sk-groq\n' }
  const { code, text } = await printed((output) =>
    importFile({ format: 'litellm', file, dir, agent: 'a', env }, output),
  )
  assert.equal(code, 0, text)

  const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  t.after(() => up.stop())
  assert.deepEqual(await up.problems(), { refused: [], warnings: [] })
  const options = { dir, agent: 'a', session: 's', scope: [], format: 'json' as const }
  const { token } = JSON.parse((await printed((output) => tokenMint(options, output))).text)
  for (const { model_name: route } of config.model_list) {
    const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/llm/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: route, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 16 }),
    })
    const body = await response.text()
    assert.equal(response.status, 200, `${route}: ${body}`)
    assert.match(body, /"content":\s*"\w/, route)
  }
  assert.deepEqual([openai.calls.length, groq.calls.length, anthropic.calls.length], [2, 1, 1])
  assert.deepEqual(azure.calls, ['/openai/deployments/ours/chat/completions?api-version=2024-10-21 sk-azure'])
})
