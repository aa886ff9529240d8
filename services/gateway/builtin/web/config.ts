import { defineBlock, isUnset, key, type Problem, type RuleOf } from '@plat/config'
import { isAddressRange } from '@plat/http'
import { isDomain } from '@plat/resources/domains'
import Type from 'typebox'
import { isText } from './text/media.ts'

const MIB = 1024 * 1024

const CONTENT_TYPES = [
  'text/html',
  'text/plain',
  'text/markdown',
  'text/csv',
  'text/xml',
  'application/xhtml+xml',
  'application/xml',
  'application/json',
]

const domains = Type.Object({
  allowedDomains: key.texts('Readable domains.'),
  deniedDomains: key.texts('Denied domains.'),
})

const search = key.group(
  {
    backend: key.choice(['none', 'searxng', 'opensearch'], 'none', 'Search backend.'),
    url: key.url('Its URL.'),
    index: key.text('Required for `opensearch`.'),
    fields: key.texts('Fields that are searched.', ['title^2', 'content']),
    urlField: key.text('Field of the address.', 'url'),
    titleField: key.text('Field of the title.', 'title'),
    snippetField: key.text('Field of the text.', 'content'),
    authHeaderFile: key.file('Value of its `Authorization` header.'),
    caFile: key.file('Its authorities.'),
    maxResults: key.whole('Results of one search.', 10, 1, 50),
  },
  'Web search.',
)

const error = (path: string, message: string): Problem => ({ path, message, severity: 'error' })

/** A backend needs a URL, and OpenSearch an index. */
const schema = Type.Object({
  enabled: key.flag('The built-in web tool.'),
  allowedDomains: key.texts('Domains that may be read, with all below them; the strictest level wins.'),
  deniedDomains: key.texts('Domains that may not.'),
  namespaces: key.map(domains, 'The same by namespace.'),
  defaultAllow: key.flag('Read every domain that is not denied where no level names allowed ones.'),
  allowedPorts: Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }), {
    default: [80, 443],
    description: 'Ports.',
  }),
  allowedCIDRs: key.texts('Exceptions to the blocked address ranges.'),
  allowIPLiterals: key.flag('URLs may name addresses.'),
  maxBytes: key.whole('Bytes of one page.', 2 * MIB, 1, 32 * MIB),
  timeoutSeconds: key.seconds('Time for one page.', 15),
  maxRedirects: key.whole('Redirects that are followed.', 5, 0, 20),
  contentTypes: key.texts('What may be read.', CONTENT_TYPES),
  respectRobots: key.flag('Heed robots.txt.'),
  userAgent: key.text('Header of every request.', 'plat-web/1.0 (+governed fetch)'),
  taintLabels: key.texts('Taints of everything that was read.', ['untrusted-input']),
  search,
})
const searchIsWhole: RuleOf<typeof schema> = ({ search }) => {
  if (search === undefined || search.backend === 'none') return []
  const needed = search.backend === 'opensearch' ? (['url', 'index'] as const) : (['url'] as const)
  return needed
    .filter((name) => isUnset(search[name]))
    .map((name) => error(`web.search.${name}`, `is required for ${search.backend}`))
}

/** A rule for each element of a list. */
function each(
  name: 'allowedDomains' | 'deniedDomains' | 'allowedCIDRs' | 'contentTypes',
  isGood: (value: string) => boolean,
  message: string,
): RuleOf<typeof schema> {
  return (block) => strange(`web.${name}`, block[name], isGood, message)
}

function strange(
  path: string,
  list: readonly (string | undefined)[] | undefined,
  isGood: (value: string) => boolean,
  message: string,
): Problem[] {
  return (list ?? []).flatMap((value, index) =>
    value === undefined || isGood(value) ? [] : [error(`${path}[${index}]`, message)],
  )
}

const DOMAIN =
  'must be a domain such as example.com (with all below it), *.example.com (only those below it), an IP address, or *'

const namespacesHoldDomains: RuleOf<typeof schema> = ({ namespaces = {} }) =>
  Object.entries(namespaces).flatMap(([name, lists]) =>
    Object.entries(lists ?? {}).flatMap(([list, values]) =>
      strange(`web.namespaces.${name}.${list}`, values, isDomain, DOMAIN),
    ),
  )

/** A valid header value that starts with the robots product name. */
const USER_AGENT = /^[A-Za-z_-](?:[\x20-\x7e]*[\x21-\x7e])?$/

const userAgentIsOne: RuleOf<typeof schema> = ({ userAgent }) =>
  userAgent === undefined || USER_AGENT.test(userAgent)
    ? []
    : [
        error(
          'web.userAgent',
          'must be one line of ASCII that begins with a product name of letters, such as plat-web/1.0',
        ),
      ]

/** `web` (docs/spec/gateway.md): the built-in web tool. */
export const webBlock = defineBlock({
  path: 'web',
  feature: 'web',
  schema,
  rules: [
    each('allowedDomains', isDomain, DOMAIN),
    each('deniedDomains', isDomain, DOMAIN),
    namespacesHoldDomains,
    each('allowedCIDRs', isAddressRange, 'must be an address range such as 10.0.0.0/8 or fd00::/8'),
    each('contentTypes', isText, 'is not a text type: content of other types cannot be scanned for secrets'),
    userAgentIsOne,
    searchIsWhole,
  ],
})
