package kafka.security.minikdc;

import verdicts.Host;

import java.io.File;
import java.util.List;
import java.util.Properties;

/** In place of the Kerberos server of this name, whose many libraries every test of SASL would load: there is none. */
public class MiniKdc {
    public MiniKdc(Properties settings, File directory) {
        throw Host.lacks("a Kerberos server");
    }

    public static Properties createConfig() {
        return new Properties();
    }

    public void start() { }

    public void stop() { }

    public void createPrincipal(File keytab, List<String> principals) { }
}
