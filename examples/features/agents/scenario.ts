/** Steps of every agent and client: calls of three servers, with each kind of refusal, and the texts that it must read. */

/** A call of a tool, until its result is no longer "waiting for approval". */
export interface Step {
  readonly server: string
  /** The case that it shows. */
  readonly shows: string
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
  /** The text that the model must read at the end of the step. */
  readonly reads: RegExp
}

/** The file that the filesystem server reads; its text has an address that is redacted. */
export const NOTE = 'Write to ada@example.com.'

/** Argument of the call that the approver denies. */
const DENIED = 13

export const SERVERS = ['files', 'everything', 'counter']

/** The steps for a filesystem server that serves `folder`. */
export function stepsIn(folder: string): readonly Step[] {
  return [
    {
      server: 'files',
      shows: 'redaction',
      tool: 'read_text_file',
      arguments: { path: `${folder}/note.txt` },
      reads: /Write to \[REDACTED:email\]\./,
    },
    {
      server: 'everything',
      shows: 'denial',
      tool: 'get-sum',
      arguments: { a: 2, b: 2 },
      reads: /get-sum was not run: only sums of other numbers\. Do not repeat this call.* Decision [0-9a-f-]{36}\./,
    },
    { server: 'everything', shows: 'a call', tool: 'echo', arguments: { message: 'one' }, reads: /Echo: one/ },
    {
      server: 'everything',
      shows: 'rate',
      tool: 'echo',
      arguments: { message: 'two' },
      reads: /echo was not run: .*the limit of 1 calls in 86400 s of each session \(rule echo .*\) is used up until 2/,
    },
    { server: 'counter', shows: 'approval', tool: 'count', arguments: { by: 1 }, reads: /^(?!.*was not run).*\d/ },
    {
      server: 'counter',
      shows: 'denial by a person',
      tool: 'count',
      arguments: { by: DENIED },
      reads: /count was not run: .*bad luck/,
    },
    {
      server: 'files',
      shows: 'budget',
      tool: 'list_directory',
      arguments: { path: folder },
      reads: /list_directory was not run: .*the session's budget\. A larger budget would help\./,
    },
  ]
}

export const ONE_ADDRESS = 'At one address'

/** The steps at the address of all servers, which is `plat` in the configuration. */
export function oneAddressSteps(steps: readonly Step[]): readonly Step[] {
  return steps.map((step) => ({ ...step, server: 'plat', tool: `${step.server}__${step.tool}` }))
}

/** Rules of the agent's policy for the steps. */
export const RULES = `
    - { name: files, action: allow, match: { servers: [files] } }
    - { name: sums, action: deny, match: { tools: [get-sum] }, when: args.a == args.b, reason: only sums of other numbers }
    - name: echo
      action: allow
      match: { servers: [everything] }
      rateLimit: { count: 1, seconds: 86400, per: session }
    - { name: count, action: require_approval, match: { servers: [counter] }, reason: somebody looks first }`

/** Configuration of the gateway for the steps. */
export const GATEWAY = {
  sessionBudgetUSD: 1,
  dlpProfiles: { contacts: { detectors: ['email'] } },
  dlp: { servers: { files: 'contacts' } },
}

export const PRICES = {
  version: 1,
  currency: 'USD',
  id: 'agents',
  models: { 'anthropic/*': { input: '0', output: '0' }, 'openai/*': { input: '0', output: '0' } },
  tools: { 'default/files/list_directory': { perCall: '2' } },
}

/** Whether a result says that the call waits for an approval. */
export function isWaiting(result: string): boolean {
  return /waiting for approval [0-9a-f-]{36}; repeat this call to learn the outcome/.test(result)
}

/** Whether the approver denies a call with these arguments. */
export function isDenied(args: string): boolean {
  return args.includes(String(DENIED))
}
