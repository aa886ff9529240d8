import { rfc3339 } from '@plat/core'
import type { PinBook, ToolState } from './book.ts'
import type { PinRules } from './rules.ts'
import { DRIFTED_MAX, type ServerPins, type ServerPinsDetail } from './view.ts'

/** What the gateway tells of the tools of servers. */
export interface PinReports {
  /** Servers with a rule that were seen or learned; by id, descending, as pages of the admin API want it. */
  all(): readonly ServerPins[]
  /** Null: unknown, or mode `off`. */
  one(server: string): ServerPinsDetail | null
}

/** `rulesOf`: the rules in force now for a server by `<namespace>/<name>`; null: mode `off`, or no such server. */
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
