import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'

/** The browser of Debian's package `chromium`. */
export const CHROMIUM = '/usr/bin/chromium'

/** Starts the browser without a window. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] })
}

/** Everything that a page reported as wrong: scripts that threw, and what the content security policy refused. */
export interface Watched {
  readonly problems: readonly string[]
  /** Addresses of other hosts that the page requested. */
  readonly foreign: readonly string[]
}

/** Collects problems of the pages of `origin` from now on; pages of other origins, such as that of the identity provider, are their own matter. */
export function watchPage(page: Page, origin: string): Watched {
  const problems: string[] = []
  const foreign: string[] = []
  const isOurs = () => page.url().startsWith(`${origin}/`)
  page.on('pageerror', (error) => void (isOurs() && problems.push(error.message)))
  page.on('console', (message) => {
    const isFault = message.type() === 'error' && !/Failed to load resource/.test(message.text())
    if (isFault && isOurs()) problems.push(message.text())
  })
  page.on('request', (request) => {
    const isHere = request.url().startsWith(`${origin}/`) || request.url().startsWith(`blob:${origin}/`)
    if (isOurs() && !isHere && !request.isNavigationRequest()) foreign.push(request.url())
  })
  return { problems, foreign }
}

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

const AXE = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'))

/** Violations that axe-core finds in the page as it is: one line each. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(await readFile(AXE, 'utf8'))
  const { violations }: AxeResults = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${html} ${failureSummary}`),
  )
}

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  /** CPU time of the thread, in microseconds. */
  readonly tdur?: number
  readonly args?: { readonly name?: string }
}

/** Returns the CPU time of the longest task of the page's main thread during `work`, in milliseconds: other load of the machine does not count. */
export async function longestTaskMs(page: Page, work: () => Promise<void>): Promise<number> {
  const browser = page.context().browser()
  if (browser === null) throw new Error('the page has no browser')
  await browser.startTracing(page, { categories: ['toplevel', 'disabled-by-default-devtools.timeline'] })
  await work()
  const traced = await browser.stopTracing()
  const { traceEvents }: { readonly traceEvents: readonly TraceEvent[] } = JSON.parse(traced.toString())
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid} ${tid}`
  const isMain = ({ name, args }: TraceEvent) => name === 'thread_name' && args?.name === 'CrRendererMain'
  const main = new Set(traceEvents.filter(isMain).map(threadOf))
  const tasks = traceEvents.filter((event) => event.name === 'RunTask' && main.has(threadOf(event)))
  return Math.round(tasks.reduce((most, { tdur = 0 }) => Math.max(most, tdur), 0) / 1000)
}
