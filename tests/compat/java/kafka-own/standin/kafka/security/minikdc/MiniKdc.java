package kafka.security.minikdc;

import verdicts.Host;

import java.io.File;
import java.util.List;
import java.util.Properties;

/** Stands in for the Kerberos server of Kafka's tests, so that they load without ApacheDS; a test that makes one is not judged. */
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
