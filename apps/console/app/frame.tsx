import { useEffect, useState } from 'preact/hooks'
import { Badge, Empty, PageHead } from '../ui/parts.tsx'
import { Name } from '../ui/text.tsx'
import { PAGES, type Page, pagesOf } from './pages.ts'
import { goTo, linkTo, type Route, useRoute } from './route.ts'
import { logOut, useShared } from './session.ts'
import { chooseTheme, chosenTheme, type Theme } from './theme.ts'

/** Navigation, person and state of the connection around the page of the address. */
export function Frame() {
  const { session } = useShared()
  const route = useRoute()
  const pages = pagesOf(session)
  const page = pages.find(({ name }) => name === route.page)
  useEffect(() => {
    const [first] = pages
    if (route.page === '' && first !== undefined) goTo(linkTo(first.name), { replace: true })
  }, [route.page])
  useEffect(() => {
    document.title = `${page?.title ?? 'Not found'} · plat`
  }, [route.page, route.id])
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="top">
        <span class="brand">plat</span>
        <nav aria-label="Pages">
          {pages.map(({ name, title }) => (
            <a href={linkTo(name)} aria-current={name === route.page ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <Person />
      </header>
      <main id="content">
        <Content page={page} route={route} hasPages={pages.length > 0} />
      </main>
    </>
  )
}

function Content({
  page,
  route,
  hasPages,
}: {
  readonly page: Page | undefined
  readonly route: Route
  readonly hasPages: boolean
}) {
  if (page !== undefined && route.id === null) return <page.list query={route.query} />
  if (page !== undefined && route.id !== null && page.one !== null) return <page.one key={route.id} id={route.id} />
  if (hasPages && route.page === '') return null
  const withheld = PAGES.find(({ name }) => name === route.page)
  if (hasPages && withheld !== undefined) return <Withheld page={withheld} />
  return (
    <>
      <PageHead title={hasPages ? 'This page does not exist' : 'You have no role'} />
      <Empty title={hasPages ? 'Choose a page above' : 'An administrator grants roles'}>
        {hasPages
          ? 'The address may be incomplete.'
          : 'They are in adminAuth.roles and adminAuth.namespaceRoles of gateway.json.'}
      </Empty>
    </>
  )
}

/** A page that the roles of the person do not include, for instance behind the link of a colleague. */
function Withheld({ page: { title, role } }: { readonly page: Page }) {
  return (
    <>
      <PageHead title={title} />
      <Empty title={`This page needs the role ${role}`}>
        An administrator grants roles in adminAuth.roles and adminAuth.namespaceRoles of gateway.json.
      </Empty>
    </>
  )
}

function Person() {
  const { session } = useShared()
  const [theme, setTheme] = useState<Theme>(chosenTheme)
  const choose = (to: string) => {
    const chosen = to === 'light' || to === 'dark' ? to : 'system'
    chooseTheme(chosen)
    setTheme(chosen)
  }
  return (
    <div class="person">
      <Connection />
      <span class="person-name" title={`Roles: ${session.roles.join(', ') || 'none'}`}>
        <Name of={session.name} />
      </span>
      <label>
        <span class="sr">Theme</span>
        <select value={theme} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="system">System theme</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </label>
      <button
        type="button"
        class="small"
        onClick={() => void logOut(session).then(() => window.location.assign('/console/'))}
      >
        Log out
      </button>
    </div>
  )
}

const STATES = {
  connecting: ['neutral', 'connecting', 'Connecting to the events of the gateway'],
  live: ['good', 'live', 'Changes appear at once'],
  polling: ['info', 'every 3 s', 'This gateway has no events: the page loads its data every three seconds'],
  offline: ['bad', 'offline', 'The gateway does not respond; the page tries again by itself'],
} as const

function Connection() {
  const { live } = useShared()
  const [state, setState] = useState(live.state)
  useEffect(() => {
    // The state may have changed between the first rendering and this effect.
    setState(live.state)
    return live.onState(() => setState(live.state))
  }, [live])
  const [tone, word, title] = STATES[state]
  return (
    <span title={title} class="connection">
      <Badge tone={tone}>{word}</Badge>
    </span>
  )
}
