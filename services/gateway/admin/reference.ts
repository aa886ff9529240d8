import { ALL_ROLES, allows } from './roles.ts'
import { adminRoutes, type RouteRow } from './routes.ts'

const INTRODUCTION = `# Routes of the admin API

Written from the gateway's table by \`node services/gateway/reference.ts\`; do not edit. How people get roles: [admin.md](../admin.md).

● the role is enough; ◐ it is enough in one namespace too (\`adminAuth.namespaceRoles\`), for what is of that namespace: the rest is
left out of lists, and is 404. ◑ it is enough in one tenant too (\`adminAuth.tenantRoles\`), and so is ◐. \`admin\` may do everything. The last column names what a route requires.

`

/** Renders the reference page of the routes and the roles that may call them. */
export function adminReference(): string {
  const roles = ALL_ROLES.filter((role) => role !== 'admin')
  const head = ['route', 'does', ...roles.map((role) => `\`${role}\``), 'needs']
  const rows = Object.entries(adminRoutes).map(([route, row]) => [
    `\`${route.replaceAll(/:(\w+)/g, '{$1}')}\``,
    row.does,
    ...roles.map((role) => dotOf(row, role)),
    needsOf(row),
  ])
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return `${INTRODUCTION}${lines.join('\n')}\n`
}

function dotOf({ needs, within }: RouteRow, role: (typeof ALL_ROLES)[number]): string {
  if (needs === 'none' || needs === 'person' || !allows(new Set([role]), needs)) return ''
  return within === 'namespace' ? '◐' : within === 'tenant' ? '◑' : '●'
}

function needsOf({ needs }: RouteRow): string {
  if (needs === 'none') return 'no token'
  return needs === 'person' ? 'a token' : `\`${needs}\``
}
