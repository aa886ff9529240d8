import { rfc3339 } from '@plat/core'
import type { PinBook, ToolState } from './book.ts'
import type { PinRules } from './rules.ts'
import { DRIFTED_MAX, type ServerPins, type ServerPinsDetail } from './view.ts'

/** Pin state of servers for the admin API and the operator. */
export interface PinReports {
  /** Servers with rules that were seen or learned, by descending id as the admin API paginates them. */
  all(): readonly ServerPins[]
  /** Servers that were seen or learned, in no order. */
  servers(): Iterable<string>
  /** Returns the summary of one server; null as for `one`. */
  summary(server: string): ServerPins | null
  /** Returns null if the server is unknown or its mode is `off`. */
  one(server: string): ServerPinsDetail | null
}

/** `rulesOf` returns the current rules of a server `<namespace>/<name>`, or null for mode `off` and unknown servers. */
export function createPinReports(book: PinBook, rulesOf: (server: string) => PinRules | null): PinReports {
  const summary = (server: string, { mode }: PinRules, tools: readonly ToolState[]): ServerPins => {
    const at = book.seenAt(server)
    return {
      id: server,
      mode,
      lastSeen: at === null ? null : rfc3339(at),
      observedTools: tools.filter(({ digest }) => digest !== null).length,
      driftedTools: tools.flatMap(({ tool, standing }) => (standing === 'drifted' ? [tool] : [])).slice(0, DRIFTED_MAX),
      unpinnedTools: tools.filter(({ standing }) => standing === 'unpinned').length,
    }
  }
  return {
    servers: () => book.servers(),
    summary(server) {
      const rules = rulesOf(server)
      return rules === null ? null : summary(server, rules, book.tools(server, rules))
    },
    all() {
      const ids = [...book.servers()].toSorted().toReversed()
      return ids.flatMap((server) => {
        const rules = rulesOf(server)
        return rules === null ? [] : [summary(server, rules, book.tools(server, rules))]
      })
    },
    one(server) {
      const rules = rulesOf(server)
      if (rules === null) return null
      const tools = book.tools(server, rules)
      const { onChange, allowUnpinned } = rules
      return {
        ...summary(server, rules, tools),
        onChange,
        allowUnpinned,
        tools: tools.map((tool) => ({ ...tool, pins: [...tool.pins] })),
      }
    },
  }
}
