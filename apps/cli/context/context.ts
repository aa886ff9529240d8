import { type Context, checkedContext, contextNamed, readContexts, writeContexts } from '../shared/contexts.ts'
import { isForPeople, type Output, plain, type WideFormat } from '../shared/output.ts'
import { printWideList } from '../shared/print.ts'

/** A context as it is listed. */
interface Row extends Context {
  readonly name: string
  readonly current: boolean
}

export async function contextList(format: WideFormat, output: Output, env = process.env): Promise<number> {
  const { current, contexts } = await readContexts(env)
  const rows: Row[] = Object.entries(contexts).map(([name, one]) => ({ name, current: name === current, ...one }))
  if (rows.length === 0 && isForPeople(format)) output.out('no contexts: make one with plat context set <name>')
  else printWideList(output, format, rows, columns)
  return 0
}

const columns = {
  columns: {
    name: ({ name }: Row) => plain(name),
    'in use': ({ current }: Row) => (current ? 'yes' : ''),
    gateway: ({ dir, adminURL, gatewayURL, identityURL }: Row) =>
      plain(dir ?? adminURL ?? gatewayURL ?? identityURL ?? ''),
  },
  further: {
    identity: ({ identityURL }: Row) => plain(identityURL ?? '-'),
    token: ({ tokenFile, login }: Row) => plain(tokenFile ?? (login === undefined ? '-' : `login (${login})`)),
    'broker token': ({ brokerTokenFile }: Row) => plain(brokerTokenFile ?? '-'),
  },
}

/** `plat context set`: creates or replaces a context, and uses it if it is the only one. */
export async function contextSet(name: string, given: Context, output: Output, env = process.env): Promise<number> {
  const context = checkedContext(name, given)
  const { current, contexts } = await readContexts(env)
  const isFirst = Object.keys(contexts).length === 0
  await writeContexts(env, { current: isFirst ? name : current, contexts: { ...contexts, [name]: context } })
  output.out(`${name} is set${isFirst || current === name ? ', and in use' : `; use it with plat context use ${name}`}`)
  return 0
}

/** `plat context use`: commands talk to this gateway from now on; without a name to that of their directory. */
export async function contextUse(name: string | undefined, output: Output, env = process.env): Promise<number> {
  const all = await readContexts(env)
  if (name !== undefined) contextNamed(all, name)
  await writeContexts(env, { ...all, current: name ?? null })
  output.out(name === undefined ? 'no context is in use: commands find .plat/env' : `${name} is in use`)
  return 0
}
