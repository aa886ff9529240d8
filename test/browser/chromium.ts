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
