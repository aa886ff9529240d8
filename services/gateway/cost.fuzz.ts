import { checkJson, readJsonObject } from '@plat/core'
import { loadCedar } from '@plat/resources/cedar'
import type { PolicyEntry, RuleEntry } from '@plat/resources/rendered'
import { costTarget, type Families, type Row } from '../../test/fuzz/cost.ts'
import { json, text } from '../../test/fuzz/families.ts'
import { page } from './admin/page.ts'
import { browserCookie } from './authn/token-vault/flow/browser.ts'
import { searchItems } from './builtin/memory/search.ts'
import { parseRobots } from './builtin/web/read/robots-rules.ts'
import { decodeText } from './builtin/web/text/charset.ts'
import { readHtml } from './builtin/web/text/html.ts'
import { isText, mediaType } from './builtin/web/text/media.ts'
import { testTarget } from './call/testing/call.ts'
import { testIdentity } from './call/testing/identity.ts'
import { textOfMessage } from './content/guards/texts.ts'
import { windowsOf } from './content/guards/windows.ts'
import { digestOf } from './decide/approvals/question/digest.ts'
import { previewOf } from './decide/approvals/question/preview.ts'
import { offeredTools } from './decide/pins/definition.ts'
import { compilePolicies } from './decide/policy/compile.ts'
import { actionsIn, verdictIn } from './decide/policy/engines/answer.ts'
import { inputJson, listInputJson } from './decide/policy/engines/input.ts'
import { judge, judgeTools } from './decide/policy/judge.ts'
import type { PolicyInput } from './decide/policy/policy-input.ts'
import { decodeFile } from './decide/revocations/format.ts'
import { readParent } from './evidence/otel/context/parent.ts'
import { commandOf } from './operate/notifications/callbacks/signed.ts'
import { readPlan } from './targets/infra/plan/plan.ts'
import { Tiers } from './targets/infra/plan/tiers.ts'
import { taintRules } from './targets/servers/labels.ts'

/** A word in which a search may begin again at each character. */
const overlapping = (length: number) => `${'a'.repeat(length / 2 - 1)}b${'a'.repeat(length / 2)}`

const KIB = 1024
const MIB = 1024 * KIB
/** Largest body of a request, by default. */
const BODY = 4 * MIB
/** Headers of a request together. */
const HEAD = 16 * KIB
const NOW = 1_767_323_045_000

/** Arguments of tools in which rules look for something. */
const argumentsJson: Families = {
  ...json,
  'text of a member': (n) => `{"path":"${'a/'.repeat(n / 2)}"}`,
  'list of a member': (n) => `{"items":[${'{"a":"b"},'.repeat(n / 10)}{}]}`,
  'map of a member': (n) => `{"items":{${Array.from({ length: n / 13 }, (_, at) => `"m${at}":"x"`).join(',')}}}`,
}

const WHENS = [
  'args.items.all(x, x.a != "c")',
  'args.path.contains("aab") || args.path.matches("a.*b")',
  'args == args',
  'size(args.items) > 3 && args.items.exists(x, x == "b")',
]
/** Rules with expensive conditions on arguments, in a realistic number for one agent. */
const rules: readonly RuleEntry[] = [
  ...Array.from(
    { length: 40 },
    (_, at): RuleEntry => ({ name: `r${at}`, action: 'allow', match: { tools: [`*a*${at}*`] } }),
  ),
  ...Array.from(
    { length: 20 },
    (_, at): RuleEntry => ({ name: `w${at}`, action: 'allow', when: WHENS[at % WHENS.length] ?? '' }),
  ),
]

const cedarText = [
  'permit(principal, action, resource) when { context.args has path && context.args.path like "*a*a*b*" };',
  'forbid(principal, action, resource) when { context.args has items && context.args.items.contains("x") };',
].join('\n')

function policyOf(more: Partial<PolicyEntry>): PolicyEntry {
  const named = { name: 'default/p', namespace: testIdentity.namespace, agents: [testIdentity.agent] }
  return { ...named, mode: 'enforce', defaultAction: 'deny', cedar: '', rules: [], ...more }
}

async function setOf(entry: PolicyEntry) {
  const compiled = compilePolicies(
    { version: 1, generation: 1, revision: 'sha256:1', policies: [entry] },
    await loadCedar(),
  )
  if ('problems' in compiled) throw new Error(compiled.problems.join())
  return compiled.set
}

function questionOf(input: string, more: Partial<PolicyInput> = {}): PolicyInput {
  const args = Buffer.from(input)
  return {
    ...{ identity: testIdentity, target: testTarget, tool: 'add', operation: 'mcp.call', method: 'tools/call' },
    ...{ taints: [], sinks: [], args, argsValue: JSON.parse(input), now: NOW },
    ...more,
  }
}

const byRules = await setOf(policyOf({ rules: [...rules] }))
const byCedar = await setOf(policyOf({ cedar: cedarText }))

const tiers = new Tiers({
  sensitiveTypes: [],
  addSensitiveTypes: [],
  dataBearingTypes: [],
  addDataBearingTypes: [],
  protectedAddresses: [],
  addProtectedAddresses: ['*a*b*c', 'module.a*x'],
  maxResources: 100,
})

const change = (address: string) =>
  `{"address":${JSON.stringify(address)},"type":"aws_iam_role","change":{"actions":["update"]}},`
const planOf = (changes: string) => `{"format_version":"1.2","resource_changes":[${changes}{}]}`
const plans: Families = {
  'small changes': (n) => planOf(change('aws_iam_role.a').repeat(n / 90)),
  'deep modules': (n) => planOf(change('module.a.'.repeat(450)).repeat(n / 4100)),
  'modules with keys': (n) => planOf(change(`module.a["${'b'.repeat(5)}"].`.repeat(200)).repeat(n / 4100)),
  'long types': (n) =>
    planOf(`{"address":"a","type":"${'aws_iam_'.repeat(500)}","change":{"actions":["update"]}},`.repeat(n / 4060)),
  'open brackets': (n) => planOf(change('['.repeat(4000)).repeat(n / 4080)),
  actions: (n) =>
    planOf(`{"address":"a","type":"b","change":{"actions":[${'"update",'.repeat(1000)}"read"]}},`.repeat(n / 9060)),
  'module calls': (n) =>
    `{"format_version":"1.2","configuration":{"root_module":{"module_calls":{${Array.from({ length: n / 60 }, (_, at) => `"m${at}":{"module":{"resources":[{"address":"x"}]}}`).join(',')}}}}}`,
}

const labels = taintRules(
  'untrusted',
  Object.fromEntries([...'abcdefghijklmnop'].map((each) => [`*${each}*a*b*`, { taints: [each] }])),
)
const cookie = browserCookie({ isSecure: true, ttlSeconds: 60 })
const sessions = Array.from({ length: 5000 }, (_, at) => ({ id: `${9999 - at}` }))

const html: Families = {
  ...text,
  'open tags': (n) => '<div>'.repeat(n / 5),
  'closing tags': (n) => '</a>'.repeat(n / 4),
  attributes: (n) => `<a ${'b=c '.repeat(n / 4)}>`,
  'one attribute': (n) => `<a style="${'x'.repeat(n)}">`,
  'many styles': (n) => '<a style="display">'.repeat(n / 19),
  comments: (n) => '<!--'.repeat(n / 4),
  scripts: (n) => '<script>'.repeat(n / 8),
  entities: (n) => '&amp;'.repeat(n / 5),
  'half entities': (n) => '&am'.repeat(n / 3),
  links: (n) => '<a href="/a?b">c</a>'.repeat(n / 20),
  bases: (n) => '<base href="/a/b"><a href=c>d</a>'.repeat(n / 33),
}

/** Tools of a list that an engine judges. */
const listed = Array.from({ length: 10_000 }, (_, at) => `t${at}`)

const policyRows: readonly Row[] = [
  {
    parser: 'rules of policies',
    limit: BODY,
    families: argumentsJson,
    prepare: (input) => {
      const question = questionOf(input)
      return () => judge(byRules, question)
    },
  },
  {
    // A response has at most 100,000 members of objects, so a list has at most as many tools.
    parser: 'rules of policies',
    part: 'lists of tools',
    limit: 2 * MIB,
    families: {
      'short names': (n) => Array.from({ length: n / 20 }, (_, at) => `ab_${at}`).join(' '),
      'names that rules match': (n) => Array.from({ length: n / 20 }, (_, at) => `xaab${at}a`).join(' '),
      'long names': (n) => `${'a'.repeat(1000)} `.repeat(n / 1001),
    },
    prepare: (input) => {
      const listing = { identity: testIdentity, target: testTarget, taints: [], sinksOf: () => [], now: NOW }
      const names = input.split(' ')
      return () => judgeTools(byRules, listing, names)
    },
  },
  {
    parser: 'Cedar',
    limit: BODY,
    families: argumentsJson,
    prepare: (input) => {
      const question = questionOf(input)
      return () => judge(byCedar, question)
    },
  },
  {
    parser: 'Rego input',
    limit: BODY,
    families: argumentsJson,
    prepare: (input) => {
      const question = questionOf(input)
      return () => inputJson(question)
    },
  },
  {
    parser: 'Rego input',
    part: 'lists',
    limit: BODY,
    families: {
      'short names': (n) => 'ab '.repeat(n / 3),
      'long names': (n) => `${'a'.repeat(1000)} `.repeat(n / 1001),
    },
    prepare: (input) => {
      const names = input.split(' ').slice(0, 10_000)
      return () => listInputJson(questionOf('{}'), names)
    },
  },
  {
    parser: 'Rego answers',
    limit: BODY,
    families: {
      ...json,
      'long reasons': (n) => `{"result":{"action":"deny","reason":"${'a\\n'.repeat(n / 3)}"}}`,
    },
    run: (input) => verdictIn(Buffer.from(input)),
  },
  {
    parser: 'Rego answers',
    part: 'of lists',
    limit: BODY,
    families: {
      ...json,
      tools: (n) => `{"result":{"tools":{${Array.from({ length: n / 16 }, (_, at) => `"t${at}":true`).join(',')}}}}`,
    },
    run: (input) => actionsIn(Buffer.from(input), listed),
  },
  {
    parser: 'digest',
    limit: BODY,
    families: argumentsJson,
    prepare: (input) => {
      const args = Buffer.from(input)
      checkJson(args)
      const facts = { identity: testIdentity, target: testTarget, pin: null }
      const body = { bytes: args, args, value: undefined, argsValue: undefined }
      return () => digestOf({ operation: 'mcp.call', method: 'tools/call', body, facts }, 'x')
    },
  },
  {
    parser: 'previews of arguments',
    limit: BODY,
    families: argumentsJson,
    run: (input) => previewOf(Buffer.from(input), { mode: 'redacted', maxBytes: 2048 }),
  },
]

const textRows: readonly Row[] = [
  {
    parser: 'guards',
    part: 'texts of messages',
    limit: BODY,
    families: json,
    prepare: (input) => {
      const message = { params: JSON.parse(input) }
      return () => textOfMessage(message)
    },
  },
  { parser: 'guards', part: 'windows', limit: BODY, families: text, run: (input) => windowsOf(input, 16 * KIB) },
  { parser: 'labels', limit: MIB, families: text, run: (input) => labels.of(input) },
  {
    parser: 'pins',
    limit: BODY,
    families: { ...json, tools: (n) => `[${'{"name":"a","inputSchema":{"b":{}}},'.repeat(n / 36)}{}]` },
    prepare: (input) => {
      const value: unknown = JSON.parse(input)
      return () => offeredTools(Array.isArray(value) ? value : [value])
    },
  },
]

const otherRows: readonly Row[] = [
  {
    parser: 'plan',
    limit: 16 * MIB,
    families: plans,
    prepare: (input) => {
      const value: unknown = JSON.parse(input)
      return async () => {
        const plan = await readPlan(value)
        return typeof plan === 'string' ? plan : await tiers.judge(plan)
      }
    },
  },
  {
    parser: 'HTML',
    limit: 2 * MIB,
    families: html,
    run: (input) => readHtml(input, new URL('https://a.example/'), 500_000),
  },
  {
    parser: 'charsets',
    limit: 2 * MIB,
    families: {
      ...html,
      metas: (n) => '<meta charset'.repeat(n / 13),
      spaces: (n) => `<meta charset=${' '.repeat(n)}`,
    },
    run: (input) => decodeText(Buffer.from(input, 'latin1'), null),
  },
  { parser: 'media types', limit: HEAD, families: text, run: (input) => [mediaType(input), isText(input)] },
  {
    parser: 'robots',
    limit: 512_000,
    families: {
      ...text,
      rules: (n) => `User-agent: *\n${'Disallow: /a*b\n'.repeat(n / 15)}`,
      'long rules': (n) => `User-agent: *\nDisallow: /${'*a'.repeat(n / 2)}\n`,
      agents: (n) => 'User-agent: *\n'.repeat(n / 14),
      'short lines': (n) => 'a:\n'.repeat(n / 3),
      comments: (n) => `Disallow: /${'#'.repeat(n)}`,
      'rules that begin often': (n) => `User-agent: *\n${`Disallow: /*${overlapping(2000)}\n`.repeat(n / 2012)}`,
    },
    run: async (input) => {
      const rules = parseRobots(input, 'plat')
      await rules.allows(`/${'ab'.repeat(1000)}`)
      await rules.allows(`/${'a'.repeat(8000)}`)
    },
  },
  {
    parser: 'search of memory',
    limit: 4 * MIB,
    families: { ...text, 'beginnings of a word': (n) => 'a'.repeat(n) },
    run: async (input) => {
      const part = Math.floor(input.length / 1000)
      const items = Array.from({ length: 1000 }, (_, at) => ({
        ...{ key: 'k', version: 1, at, keepUntil: 0, taints: [], by: { agent: 'a', session: 'b', person: null } },
        text: input.slice(at * part, at * part + part),
      }))
      await searchItems(items, 'a b c d e f g h i j k l m n o p q', 20)
      await searchItems(items, overlapping(1024), 20)
    },
  },
  {
    parser: 'callbacks of chats',
    limit: 64 * KIB,
    families: {
      ...json,
      commands: (n) => JSON.stringify({ text: 'approve '.repeat(n / 8), from: { aadObjectId: 'a' } }),
    },
    run: (input) => {
      const members = readJsonObject(input)
      return members === null ? null : commandOf(members)
    },
  },
  {
    parser: 'trace context',
    limit: HEAD,
    families: text,
    run: (input) => [readParent(input, input), readParent(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, input)],
  },
  {
    parser: 'revocations',
    limit: 16 * MIB,
    families: {
      ...json,
      entries: (n) => `{"version":1,"revocations":[${'{"id":"a","target":{"namespace":"b"}},'.repeat(n / 38)}{}]}`,
    },
    prepare: (input) => {
      const file = Buffer.from(input)
      return () => decodeFile(file)
    },
  },
  {
    parser: 'cookies',
    limit: HEAD,
    families: { ...text, cookies: (n) => 'a=b; '.repeat(n / 5), spaces: (n) => `;${' '.repeat(n)}` },
    run: (input) => cookie.read(input),
  },
  {
    parser: 'list cursors',
    limit: HEAD,
    families: text,
    run: (input) => page(sessions, { cursor: input, limit: '10' }),
  },
]

export const target = costTarget('cost/gateway features', [...policyRows, ...textRows, ...otherRows])
