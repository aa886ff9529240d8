/** Returns why an address did not respond: it is not a URL, a proxy of the environment is used for it, or nothing listens there. */
export function unreachableReason(url: string, env: NodeJS.ProcessEnv = process.env): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return 'is no URL such as http://127.0.0.1:8080'
  const { protocol, hostname } = new URL(url)
  const variable = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const isProxied = env.NODE_USE_ENV_PROXY === '1' && (env[variable] ?? env[variable.toLowerCase()]) !== undefined
  const direct = (env.NO_PROXY ?? env.no_proxy ?? '').split(',').map((host) => host.trim())
  if (isProxied && !direct.includes(hostname) && !direct.includes('*'))
    return `does not respond through the proxy of ${variable}; add ${hostname} to NO_PROXY if it needs none`
  return 'does not respond'
}
