import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { printed } from '../testing/commands.ts'
import { validateResources } from '../validate/validate.ts'
import type { ImportFormat } from './formats.ts'
import { importFile } from './import.ts'

let dir = ''
beforeEach(() => {
  dir = tempFolder()
})

const text = (path: string) => readFile(join(dir, path), 'utf8')

async function imported(format: ImportFormat, content: string, env: NodeJS.ProcessEnv = {}) {
  const file = join(dir, 'input')
  await writeFile(file, content)
  const options = { format, file, dir, agent: 'assistant', env }
  const { code, text: lines } = await printed((output) => importFile(options, output))
  return { code, lines: lines.replaceAll(`${file}:`, 'input:').split('\n') }
}

const notes = (lines: readonly string[]) => lines.filter((line) => line.includes('not converted'))

const CLIENT = `{
\t// servers of a team, with a trailing comma
  "mcpServers": {
    "Notes": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer \${NOTES_TOKEN}"}},
    "search": {"url": "http://127.0.0.1:2/mcp", "headers": {"X-Api-Key": "literal-key"}, "autoApprove": ["x"]},
    "old": {"type": "sse", "url": "http://127.0.0.1:3/sse"},
    "two": {"url": "http://127.0.0.1:4/mcp", "headers": {"A": "1", "B": "2"}},
    "query": {"url": "http://127.0.0.1:5/mcp?key=in-the-query"},
    "unset": {"url": "http://\${HOST}/mcp"},
    "plat-web": {"url": "http://127.0.0.1:6/mcp"},
  },
}`

test('servers of a client become resources, secrets go into .plat/secrets, and the rest is listed with lines', async () => {
  const { code, lines } = await imported('mcp-json', CLIENT, { NOTES_TOKEN: 'from-the-environment' })
  assert.equal(code, 3)
  assert.deepEqual(notes(lines), [
    'input:5: mcpServers["search"].autoApprove: not converted: write a rule of a ToolPolicy',
    'input:6: mcpServers["old"]: not converted: the transport sse is not supported: use the server’s Streamable HTTP address',
    'input:7: mcpServers["two"]: not converted: headers: plat presents one header to a server; this one needs several',
    'input:8: mcpServers["query"]: not converted: url: its query or a variable may hold a secret; send it in a header, and write the rest of the url',
    'input:9: mcpServers["unset"]: not converted: url: set HOST',
  ])
  assert.equal(await text('.plat/secrets/default/notes/token'), 'from-the-environment')
  assert.equal(await text('.plat/secrets/default/search/token'), 'literal-key')
  assert.equal((await stat(join(dir, '.plat/secrets/default/search/token'))).mode & 0o777, 0o600)
  for (const secret of ['from-the-environment', 'literal-key', 'in-the-query']) {
    for (const file of ['mcpservers/default/notes', 'mcpservers/default/search', 'agents/default/assistant'])
      assert.doesNotMatch(await text(`resources/${file}.yaml`), new RegExp(secret))
    assert.doesNotMatch(lines.join('\n'), new RegExp(secret))
  }
  assert.match(await text('resources/mcpservers/default/server-web.yaml'), /^# yaml-language-server: \$schema=\.\.\//)
  const { code: valid, text: report } = await printed((output) => validateResources({ dir, strict: true }, output))
  assert.equal(valid, 0, report)
})

test('servers on stdin and stdout are converted, their variables are secrets, and secret arguments are not converted', async () => {
  const server = (args: readonly string[], more: object = {}) => ({ command: 'npx', args, ...more })
  const mcpServers = {
    files: server(['-y', 'files', '/tmp'], { env: { TOKEN: 'in-a-variable', HOST: `\${HOST:-here}` }, cwd: '/srv' }),
    plain: server(['-y', 'plain']),
    flag: server(['--api-key', 'in-an-argument']),
    equals: server(['--token=in-an-argument']),
    docker: server(['run', '-e', 'API_KEY=in-an-argument', 'image']),
    header: server(['mcp-remote', 'https://x', '--header', 'Authorization: Bearer in-an-argument']),
    address: server(['postgres://user:in-an-argument@host/db']),
  }
  const { code, lines } = await imported('claude-desktop', JSON.stringify({ mcpServers }, null, 1))
  assert.equal(code, 3)
  const refused = notes(lines).map((line) =>
    /mcpServers\["(\w+)"\].*args\[(\d)\] may hold a secret/.exec(line)?.slice(1),
  )
  const expected = { flag: 1, equals: 0, docker: 2, header: 3, address: 0 }
  assert.deepEqual(Object.fromEntries(refused.map(([name = '', at] = []) => [name, Number(at)])), expected)
  const files = await text('resources/mcpservers/default/files.yaml')
  assert.match(files, /stdio:\n {4}command: npx\n/)
  assert.match(files, /- name: TOKEN\n {8}valueFrom:\n {10}secretKeyRef:\n {12}name: files\n {12}key: TOKEN\n/)
  assert.equal(await text('.plat/secrets/default/files/TOKEN'), 'in-a-variable')
  assert.equal(await text('.plat/secrets/default/files/HOST'), 'here')
  assert.doesNotMatch(files + lines.join('\n'), /in-a-variable|in-an-argument/)
  const { code: valid, text: report } = await printed((output) => validateResources({ dir, strict: true }, output))
  assert.equal(valid, 0, report)
})

test('existing files are kept, and the remaining steps are printed', async () => {
  await imported('mcp-json', '{"mcpServers": {"notes": {"url": "http://127.0.0.1:1/mcp"}}}')
  const before = await text('resources/agents/default/assistant.yaml')
  const both = '{"servers": {"notes": {"url": "http://127.0.0.1:9/mcp"}, "more": {"url": "http://127.0.0.1:2/mcp"}}}'
  const { code, lines } = await imported('claude-desktop', both)
  assert.equal(code, 3)
  assert.match(await text('resources/mcpservers/default/notes.yaml'), /127\.0\.0\.1:1/)
  assert.equal(await text('resources/agents/default/assistant.yaml'), before)
  assert.deepEqual(lines.filter((line) => !line.startsWith('wrote')).slice(0, -2), [
    'input:1: servers["notes"]: not converted: MCPServer default/notes exists, and was not changed',
    'next: add "- name: more" to spec.tools of Agent default/assistant',
    'next: add more to the rules of ToolPolicy default/assistant',
  ])
})

test('a resource that is declared among other documents is not written a second time', async () => {
  const all =
    'apiVersion: plat.dev/v1alpha1\nkind: MCPServer\nmetadata: {name: notes, namespace: default}\nspec: {url: "http://x"}\n'
  await mkdir(join(dir, 'resources'))
  await writeFile(join(dir, 'resources/all.yaml'), all)
  const { lines } = await imported('mcp-json', '{"mcpServers": {"notes": {"url": "http://127.0.0.1:1/mcp"}}}')
  assert.match(lines.join('\n'), /MCPServer default\/notes exists/)
  assert.equal(existsSync(join(dir, 'resources/mcpservers')), false)
})

test('MCP servers of a compose file are those with a published port', async () => {
  const compose = `services:
  mcp-notes:
    image: example/notes
    ports: ["127.0.0.1:8091:80"]
  tools:
    image: example/tools
    labels: {plat.dev/mcp: /tools/mcp}
    ports: [{target: 80, published: 8092}]
  mcp-inside:
    image: example/inside
  database:
    image: postgres
`
  const { code, lines } = await imported('compose', compose)
  assert.equal(code, 3)
  assert.match(await text('resources/mcpservers/default/mcp-notes.yaml'), /url: http:\/\/127\.0\.0\.1:8091\/mcp/)
  assert.match(await text('resources/mcpservers/default/tools.yaml'), /url: http:\/\/127\.0\.0\.1:8092\/tools\/mcp/)
  assert.deepEqual(notes(lines), [
    'input:9: services["mcp-inside"]: not converted: it publishes no port on this machine, and plat runs beside the containers',
    'input:11: services["database"]: not converted: it does not look like an MCP server; if it is one, give it the label plat.dev/mcp: /mcp',
  ])
})

const LITELLM = `model_list:
  - model_name: gpt-4o
    litellm_params: {model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY, rpm: 60, tpm: 1000, temperature: 1}
  - model_name: claude
    litellm_params: {model: claude-sonnet-4-5}
  - model_name: team/azure
    litellm_params: {model: azure/ours, api_base: "https://a.openai.azure.com", api_version: "2024-10-21", api_key: sk-literal}
    model_info: {input_cost_per_token: 0.0000025, output_cost_per_token: 1.0e-05, team: x}
  - model_name: gpt-4o
    litellm_params: {model: openai/gpt-4o, api_base: os.environ/SECOND_BASE, api_key: os.environ/SECOND_KEY}
  - model_name: nova
    litellm_params: {model: bedrock/eu.amazon.nova-lite-v1:0, aws_region_name: eu-central-1}
  - model_name: odd
    litellm_params: {model: cohere/command-r}
  - model_name: spy
    litellm_params: {model: openai/x, api_base: "https://user:password@example.com/v1"}
litellm_settings:
  fallbacks: [{gpt-4o: [claude]}, {nope: [claude]}]
  max_budget: 100
  budget_duration: 30d
router_settings:
  model_group_alias: {gpt-4: gpt-4o, lost: nothing}
general_settings: {master_key: sk-master}
`

test('a LiteLLM configuration becomes routes with keys as files, aliases, fallbacks, rates, prices and a budget', async () => {
  const env = { OPENAI_API_KEY: 'sk-openai', SECOND_BASE: 'http://127.0.0.1:9/v1', ANTHROPIC_API_KEY: 'sk-anthropic' }
  const { code, lines } = await imported('litellm', LITELLM, env)
  assert.equal(code, 3)
  const secret = (name: string) => `.plat/secrets/default/litellm/${name}`
  const second = { upstream: 'http://127.0.0.1:9/v1', model: 'gpt-4o', apiKeyFile: secret('SECOND_KEY') }
  const claude = {
    provider: 'anthropic',
    upstream: 'https://api.anthropic.com/v1',
    model: 'claude-sonnet-4-5',
    apiKeyFile: secret('ANTHROPIC_API_KEY'),
  }
  assert.deepEqual(JSON.parse(await text('gateway.json')).models, {
    'gpt-4o': {
      upstream: 'https://api.openai.com/v1',
      model: 'gpt-4o',
      apiKeyFile: secret('OPENAI_API_KEY'),
      ...{ requestsPerMinute: 60, tokensPerMinute: 1000, aliases: { 'gpt-4': 'gpt-4o' } },
      ...{ balancing: 'weight', fallbacks: [second, { ...claude, weight: 0 }] },
    },
    claude,
    'team-azure': {
      ...{ provider: 'azure-openai', mode: 'deployments', upstream: 'https://a.openai.azure.com' },
      ...{ apiVersion: '2024-10-21', model: 'ours', apiKeyFile: secret('team-azure-api-key') },
      aliases: { 'team/azure': 'ours' },
    },
    nova: { provider: 'bedrock', region: 'eu-central-1', model: 'eu.amazon.nova-lite-v1:0' },
  })
  assert.deepEqual(JSON.parse(await text('prices.json')).models, {
    'azure-openai/ours': { input: '2.5', output: '10' },
  })
  assert.equal(await text(secret('OPENAI_API_KEY')), 'sk-openai')
  assert.equal(await text(secret('team-azure-api-key')), 'sk-literal')
  assert.match(await text('resources/budgetpolicies/default/litellm.yaml'), /perMonth: "100"/)
  assert.match(await text('resources/agents/default/assistant.yaml'), /modelRoutes:\n(?: +- .+\n)* +- team-azure\n/)
  assert.deepEqual(notes(lines), [
    'input:3: model_list[0].litellm_params.temperature: not converted: plat forwards what the caller sends; set it in the request',
    'input:8: model_list[2].model_info.team: not converted: plat has nothing like it',
    'input:14: model_list[5].litellm_params.model: not converted: plat has no provider "cohere"; set api_base of its OpenAI-compatible API',
    'input:16: model_list[6].litellm_params.api_base: not converted: must be an http or https URL without password, query and fragment',
    'input:18: litellm_settings.fallbacks[1]: not converted: "nope" is not a model that was converted',
    'input:22: router_settings.model_group_alias["lost"]: not converted: it names no model that was converted',
    'input:23: general_settings.master_key: not converted: callers use the token of a session: plat run, or plat token mint',
  ])
  assert.ok(lines.includes(`next: write the value of SECOND_KEY into ${secret('SECOND_KEY')}`))
  assert.doesNotMatch(lines.join('\n') + (await text('gateway.json')), /sk-|user:/)
})

test('base URLs of LiteLLM lead to the same servers, whatever end they have', async () => {
  const bases: readonly (readonly [model: string, base: string, upstream: string])[] = [
    ['anthropic/claude-5', 'https://proxy.example/a', 'https://proxy.example/a/v1'],
    ['anthropic/claude-5', 'https://proxy.example/v1/messages', 'https://proxy.example/v1'],
    ['anthropic/claude-5', 'https://api.anthropic.com/v1/', 'https://api.anthropic.com/v1'],
    ['ollama/llama3', 'http://localhost:11434', 'http://localhost:11434/v1'],
    ['ollama_chat/llama3', 'http://localhost:11434/api/chat', 'http://localhost:11434/v1'],
    ['openai/gpt-5', 'https://proxy.example/openai', 'https://proxy.example/openai'],
  ]
  const entries = bases.map(([model, api_base], at) => ({ model_name: `m${at}`, litellm_params: { model, api_base } }))
  assert.equal((await imported('litellm', JSON.stringify({ model_list: entries }))).code, 0)
  const { models } = JSON.parse(await text('gateway.json'))
  for (const [at, [, , upstream]] of bases.entries()) assert.equal(models[`m${at}`].upstream, upstream)
})

test('entries of one name share its calls as in LiteLLM', async () => {
  const entry = (weight: number) => ({
    model_name: 'm',
    litellm_params: { model: 'openai/m', api_base: 'http://127.0.0.1:1/v1', weight },
  })
  const model_list = [entry(9), entry(1), entry(0.5)]
  const router_settings = { routing_strategy: 'latency-based-routing' }
  const { lines } = await imported('litellm', JSON.stringify({ model_list, router_settings }))
  const { m } = JSON.parse(await text('gateway.json')).models
  const weights = [m, ...m.fallbacks].map(({ weight }) => weight)
  assert.deepEqual([m.balancing, weights], ['latency', [9, 1, undefined]])
  assert.match(notes(lines)[0] ?? '', /model_list\[2\]\.litellm_params\.weight: .*must be a whole number up to 1000/)
})

test('an existing gateway.json is kept, and the routes are in a file beside it', async () => {
  await writeFile(join(dir, 'gateway.json'), '{}')
  const { lines } = await imported('litellm', LITELLM)
  assert.equal(await text('gateway.json'), '{}')
  assert.ok(lines.includes('next: copy "models" of gateway.litellm.json into gateway.json'))
  assert.ok(Object.hasOwn(JSON.parse(await text('gateway.litellm.json')).models, 'gpt-4o'))
})

test('a file of another format, and a name that no agent can have, are one line', async () => {
  await assert.rejects(imported('litellm', 'a: 1'), /input: no models: "model_list" is missing$/)
  await assert.rejects(imported('litellm', 'a: ['), /input:1: Flow sequence/)
  await assert.rejects(imported('mcp-json', '{"mcpServers": '), /input: is not JSON: /)
  await assert.rejects(imported('claude-desktop', '{}'), /input: no MCP servers: /)
  await assert.rejects(imported('compose', 'a: 1'), /input: no services: /)
  const options = { format: 'compose' as const, file: 'x', dir, agent: '../x' }
  await assert.rejects(
    printed((output) => importFile(options, output)),
    /"\.\.\/x" cannot be the name of an agent/,
  )
  await assert.rejects(
    printed((output) => importFile({ ...options, agent: 'a' }, output)),
    /^Error: x cannot be read: /,
  )
})
